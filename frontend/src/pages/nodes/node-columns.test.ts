import { expect, it } from "vitest";
import { csvPath, nodeListQuery } from "@/api/nodes";
import { chosenColumns, NODE_COLUMNS, planLook, toggleColumn } from "./node-columns";
import { labelsOf } from "./node-filters";

const keys = (wanted?: string[]) => chosenColumns(wanted).map(({ key }) => key);

it("shows the wished columns in the table's order, and leaves out what is no column", () => {
  expect(keys(["last_report_at", "constructor", "findings"])).toEqual(["findings", "last_report_at"]);
});

it("adds and takes away a column, and forgets the choice when it is the usual one", () => {
  const added = toggleColumn(undefined, "labels");
  expect(keys(added)).toEqual(
    NODE_COLUMNS.map(({ key }) => key).filter((key) => keys().includes(key) || key === "labels"),
  );
  expect(toggleColumn(added, "labels")).toBeUndefined();
});

it("calls a plan that waits for its installation no fault, as the node's findings do", () => {
  expect([planLook("short", 0), planLook("drifted", 0), planLook("idle", 1)]).toEqual(
    Array(3).fill("attention"),
  );
  expect([planLook("short", 1), planLook("drifted", 1)]).toEqual(["wrong", "wrong"]);
  expect(planLook("match", 1)).toBe("ok");
});

it("reads labels as they are typed, as many as the server takes", () => {
  expect(labelsOf(" env=prod , ,role ")).toEqual(["env=prod", "role"]);
  expect(labelsOf(" , ")).toBeUndefined();
  expect(labelsOf(Array.from({ length: 20 }, (_, index) => `l${index}`).join(","))).toHaveLength(16);
});

it("asks for the list and its CSV with the same selection", () => {
  const query = nodeListQuery({ label: ["env=prod", "a&b"], down: true, sort: "pool_bytes", view: "groups" });
  expect(query).toEqual({ label: ["env=prod", "a&b"], descending: true, sort: "pool_bytes" });
  expect(csvPath("/x.csv", { ...query, q: undefined })).toBe(
    "/x.csv?label=env%3Dprod&label=a%26b&sort=pool_bytes&descending=true",
  );
});
