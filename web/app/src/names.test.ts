import { expect, test } from "vitest";
import { cleanPlayerName, isSessionName, playerName, sessionName } from "./names";

test("names are readable", () => {
  expect(sessionName(() => 0)).toBe("amber-badger-1000");
  expect(playerName(() => 0)).toBe("Brave Badger");
});

test("random names are names that a session can have", () => {
  for (let i = 0; i < 100; i++) expect(isSessionName(sessionName())).toBe(true);
});

test("a typed name loses invisible and surplus characters", () => {
  expect(cleanPlayerName("  Ada \u0007\t Lovelace ")).toBe("Ada Lovelace");
  expect(cleanPlayerName("   ")).toBe("");
  expect(cleanPlayerName("é".repeat(40))).toBe("é".repeat(24));
});

test("what would not survive in an address is no session name", () => {
  expect(isSessionName("")).toBe(false);
  expect(isSessionName("a b")).toBe(false);
  expect(isSessionName("a/b")).toBe(false);
  expect(isSessionName("x".repeat(65))).toBe(false);
  expect(isSessionName("grün-4")).toBe(true);
});
