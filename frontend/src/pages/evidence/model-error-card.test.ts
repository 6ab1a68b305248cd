import { expect, test } from "vitest";
import { leftOutText } from "./model-error-card";

test("a machine left out says how many of its cells lie inside, or why nobody knows", () => {
  expect(leftOutText({ machine: "Zen 3", cells: 10, inside: 9, why: null })).toBe("Zen 3: 9 of 10");
  expect(leftOutText({ machine: "Zen 3", cells: 7, inside: null, why: "too few others" })).toBe(
    "Zen 3: too few others",
  );
});
