import { expect, test } from "vitest";
import { hasLeaders, layoutOf, minimapSide } from "./layout";

test("what lies over the map is arranged by the room that there is", () => {
  expect(layoutOf({ w: 1280, h: 742 }, false)).toBe("wide");
  expect(layoutOf({ w: 768, h: 966 }, true)).toBe("roomy");
  for (const [w, h] of [[844, 332], [568, 262]] as const) expect(layoutOf({ w, h }, true)).toBe("flat");
  for (const [w, h] of [[390, 786], [320, 510]] as const) expect(layoutOf({ w, h }, true)).toBe("tall");
  // Beside a panel on a phone that lies.
  for (const [w, h] of [[476, 332], [256, 262], [256, 700]] as const) expect(layoutOf({ w, h }, true)).toBe("tiny");
});

test("leaders and a large map are shown where there is room", () => {
  expect(["wide", "roomy", "flat", "tall", "tiny"].map((layout) => hasLeaders(layout as "wide"))).toEqual([true, true, false, false, false]);
  expect(minimapSide("wide", { w: 1280, h: 742 })).toBe(164);
  expect(minimapSide("tall", { w: 320, h: 510 })).toBeLessThan(minimapSide("tall", { w: 390, h: 786 }));
});
