import { expect, it } from "vitest";
import { rememberForLogin, takeRemembered } from "./after-login";

it("gives the address with its fragment back once", () => {
  expect(takeRemembered()).toBeNull();
  rememberForLogin("/planner?node=a#draft=abc");
  expect(takeRemembered()).toBe("/planner?node=a#draft=abc");
  expect(takeRemembered()).toBeNull();
});
