import { expect, it } from "vitest";
import { browserName } from "./browser-name";

it("names browser and system, and leaves unknown unknown", () => {
  const webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";
  expect(browserName(`Mozilla/5.0 (X11; Linux x86_64) ${webkit} Chrome/131.0.0.0 Safari/537.36`)).toBe(
    "Chromium 131 on Linux",
  );
  expect(
    browserName(`Mozilla/5.0 (Windows NT 10.0) ${webkit} Chrome/131.0.0.0 Safari/537.36 Edg/131.0`),
  ).toBe("Edge 131 on Windows");
  expect(browserName("Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0")).toBe(
    "Firefox 130 on Linux",
  );
  expect(browserName("curl/8.5.0")).toBe("curl/8.5.0");
  expect(browserName(null)).toBeNull();
});
