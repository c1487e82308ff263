import { expect, test } from "vitest";
import { Claims } from "./claims";

function tab() {
  const kept = new Map<string, string>();
  const store = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
  return { kept, page: (session = "den") => new Claims("pong", session, () => store) };
}

test("a page finds the claim of the tab's previous page", () => {
  const { page } = tab();
  const first = page();
  expect(first.take()).toBe(null);
  first.given("c0");
  first.given("c1");
  first.given("");
  first.leave();
  expect(page("elsewhere").take()).toBe(null);
  expect(page().take()).toBe("c1");
});

test("while a page plays, a copy of its tab finds nothing", () => {
  const { page, kept } = tab();
  const first = page();
  first.given("c0");
  first.leave();
  const second = page();
  expect(second.take()).toBe("c0");
  expect(kept.size).toBe(0);
  // Hidden, and perhaps ended without a word: the newest claim is there until it is looked at again.
  second.leave();
  second.given("c1");
  expect([...kept.values()]).toEqual(["c1"]);
  second.hold();
  expect(kept.size).toBe(0);
  // Left for good.
  second.leave();
  expect(page().take()).toBe("c1");
});

test("a page without storage has no claim, and does not fail", () => {
  const page = new Claims("pong", "den", () => {
    throw new Error("forbidden");
  });
  page.given("c0");
  page.leave();
  expect(page.take()).toBe(null);
});
