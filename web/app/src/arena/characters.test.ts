import { expect, test } from "vitest";
import { CHARACTERS, lifeText, lookOf, NOBODY } from "./characters";

test("characters differ in more than colour", () => {
  const looks = CHARACTERS.map(lookOf);
  expect(looks.map(({ title }) => title)).toEqual(["Scout", "Guard", "Smith"]);
  expect(new Set(looks.map(({ emblem }) => emblem)).size).toBe(3);
  expect(looks.every(({ emblem }) => emblem !== NOBODY.emblem)).toBe(true);
});

test("characters of a later build look like nobody", () => {
  for (const character of [null, undefined, "", "wizard"]) expect(lookOf(character)).toBe(NOBODY);
});

test("a life is told in a few words", () => {
  expect(lifeText({ kills: 3, deaths: 1, built: 12 })).toBe("shot 3, was shot 1, built 12");
});
