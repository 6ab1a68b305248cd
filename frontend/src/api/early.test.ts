// @vitest-environment jsdom
import { afterEach, expect, it, vi } from "vitest";
import { fetchOrEarly } from "./early";

const request = (path: string, method = "GET") => new Request(new URL(path, "http://localhost"), { method });
const early = (answers: Record<string, Promise<Response>>) => {
  window.hugeplanEarly = new Map(Object.entries(answers));
};

afterEach(() => {
  delete window.hugeplanEarly;
});

it("hands an early answer over once, and only to the same question", async () => {
  const sent = vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("sent"));
  early({ "/api/v1/session": Promise.resolve(new Response("early")) });
  expect(await (await fetchOrEarly(request("/api/v1/session?x=1"))).text()).toBe("sent");
  expect(await (await fetchOrEarly(request("/api/v1/session", "DELETE"))).text()).toBe("sent");
  expect(sent).toHaveBeenCalledTimes(2);
  expect(await (await fetchOrEarly(request("/api/v1/session"))).text()).toBe("early");
  expect(await (await fetchOrEarly(request("/api/v1/session"))).text()).toBe("sent");
});

it("forgets what was asked before the sign-in", async () => {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response("after the sign-in"));
  early({
    "/api/v1/session": Promise.resolve(new Response("{}", { status: 401 })),
    "/api/v1/fleet/summary": Promise.resolve(new Response("{}", { status: 401 })),
  });
  expect((await fetchOrEarly(request("/api/v1/session"))).status).toBe(401);
  expect(await (await fetchOrEarly(request("/api/v1/fleet/summary"))).text()).toBe("after the sign-in");
});

it("a failure on the way is the failure of the request", async () => {
  early({ "/api/v1/session": Promise.reject(new TypeError("Failed to fetch")) });
  await expect(fetchOrEarly(request("/api/v1/session"))).rejects.toThrow("Failed to fetch");
});
