import { expect, test } from "vitest";
import { fileName, keyOf, surplus } from "./copies";

const at = (saved_unix_ms: number) => ({ saved_unix_ms });

test("the copies that were kept first make place for others", () => {
  const copies = [3, 1, 2, 5, 4].map(at);
  expect(surplus(copies, 5)).toEqual([]);
  expect(surplus(copies, 3)).toEqual([at(2), at(1)]);
  expect(copies[0]).toEqual(at(3));
  expect(surplus(Array.from({ length: 12 }, (_, ms) => at(ms)))).toEqual([at(1), at(0)]);
});

test("copies of one session in different builds are different", () => {
  expect(keyOf({ build: "ab", id: "den-5" })).not.toBe(keyOf({ build: "cd", id: "den-5" }));
  expect(fileName({ id: "den-5" })).toBe("den-5.save");
});
