// @vitest-environment jsdom
import { beforeEach, expect, it } from "vitest";
import { takeTokenFromHash } from "./token-hash";

beforeEach(() => window.history.replaceState(null, "", "/"));

it("returns the token and removes it from the address", () => {
  window.history.replaceState({ key: 1 }, "", "/login?next=%2Fplanner#token=hp_abc%2B1");
  expect(takeTokenFromHash(window)).toBe("hp_abc+1");
  expect(window.location.href.endsWith("/login?next=%2Fplanner")).toBe(true);
  expect(window.history.state).toEqual({ key: 1 });
  expect(takeTokenFromHash(window)).toBeNull();
});

it("finds nothing in another fragment, and clears an empty token", () => {
  window.history.replaceState(null, "", "/login#section");
  expect(takeTokenFromHash(window)).toBeNull();
  expect(window.location.hash).toBe("#section");
  window.history.replaceState(null, "", "/login#token=");
  expect(takeTokenFromHash(window)).toBeNull();
  expect(window.location.hash).toBe("");
});
