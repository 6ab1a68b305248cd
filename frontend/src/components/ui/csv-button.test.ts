// @vitest-environment jsdom
import { expect, it, vi } from "vitest";
import { wholeCsv } from "./csv-button";

it("follows the cursor to the last page, and keeps one head", async () => {
  const asked: string[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation((input) => {
    const url = new URL(String(input));
    asked.push(url.search);
    return Promise.resolve(
      url.searchParams.has("cursor")
        ? new Response("name\nb\n")
        : new Response("name\na\n", { headers: { "X-Next-Cursor": "c" } }),
    );
  });
  expect(await wholeCsv("/api/v1/nodes.csv?q=x")).toBe("name\na\nb\n");
  expect(asked).toEqual(["?q=x&limit=500", "?q=x&limit=500&cursor=c"]);
});
