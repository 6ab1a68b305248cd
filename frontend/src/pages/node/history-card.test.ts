import { expect, it } from "vitest";
import { withGaps } from "./history-card";

it("shows a silence as a gap instead of a straight line", () => {
  const row = (minute: number) => ({ x: minute * 60_000, values: { available: 10, page_tables: 2 } });
  const rows = withGaps([row(0), row(1), row(2), row(3), row(240), row(241)]);
  expect(rows).toHaveLength(7);
  expect(rows[4]?.values).toEqual({ available: null, page_tables: null });
  expect(withGaps([row(0), row(1)])).toHaveLength(2);
});
