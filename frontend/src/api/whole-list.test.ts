import { expect, it } from "vitest";
import { wholeList } from "./whole-list";

it("asks for each part until there is none", async () => {
  const parts = [
    { items: [1, 2], next_cursor: "a" },
    { items: [3], next_cursor: "b" },
    { items: [4], next_cursor: null },
  ];
  const asked: (string | undefined)[] = [];
  const { items } = await wholeList(({ cursor }) => {
    asked.push(cursor);
    return Promise.resolve(parts[asked.length - 1] ?? { items: [], next_cursor: null });
  });
  expect(items).toEqual([1, 2, 3, 4]);
  expect(asked).toEqual([undefined, "a", "b"]);
});

it("fails as a whole when a part fails: a cut list is no list", async () => {
  const broken = wholeList(({ cursor }) =>
    cursor ? Promise.reject(new Error("away")) : Promise.resolve({ items: [1], next_cursor: "a" }),
  );
  await expect(broken).rejects.toThrow("away");
});
