import { expect, test } from "vitest";
import type { Trial } from "@/api/types";
import { shapeText, trialRows } from "./trial-rows";
import { trialsTitle } from "./trials-table";

const GAIN = { likely: 7.5, low: 6.4, high: 8.6 };
const SIZES: Trial["page_sizes"] = [
  {
    page_size: "2M",
    status: "measured",
    reason: null,
    gain: GAIN,
    blocks: 22,
    text: "measured here",
    predicted: { low: 1, likely: 5, high: 7, error_class: "rows_inline" },
  },
  {
    page_size: "equal",
    status: "measured",
    reason: null,
    gain: { likely: 0.1, low: -0.8, high: 1 },
    blocks: 11,
    text: null,
    predicted: null,
  },
  {
    page_size: "1G",
    status: "skipped",
    reason: "no 1G pages",
    gain: null,
    blocks: 0,
    text: null,
    predicted: null,
  },
  {
    page_size: "thp",
    status: "too_noisy",
    reason: null,
    gain: { likely: 9, low: null, high: null },
    blocks: 2,
    text: null,
    predicted: { low: 1, likely: 5, high: 7, error_class: "rows_inline" },
  },
];

test("each page size has its gain beside the noise of equal pages", () => {
  const rows = trialRows({ page_sizes: SIZES });
  expect(rows.map(({ pages, isAnswer, why }) => [pages, isAnswer, why])).toEqual([
    ["2M", true, null],
    ["1G", false, "no 1G pages"],
    ["THP", false, "Too noisy"],
  ]);
  expect(rows[0]?.gain).toMatch(/7\.5.*6\.4.*8\.6/);
  expect(rows[0]?.noise).toMatch(/0\.1.*0\.8.*1/);
  expect(rows[1]?.gain).toBeNull();
  expect(rows[0]?.predicted).toMatch(/5\.0.*1\.0.*7\.0/);
  // A gain of 7.5 % is outside 1 to 7 %; what was not measured well enough is neither in nor out.
  expect(rows.map(({ isInside }) => isInside)).toEqual([false, null, null]);
  expect(rows[2]?.gain).toMatch(/9/);
});

test("the title says the newest answer, or that there is none", () => {
  const trial = { engine: "postgresql", page_sizes: SIZES } as Trial;
  expect(trialsTitle([trial])).toMatch(/^2M pages gained .*7\.5.* with postgresql, measured\.$/);
  expect(trialsTitle([])).toBe("Nothing was tried yet.");
  expect(trialsTitle([{ ...trial, page_sizes: SIZES.slice(1) }])).toBe("No trial gave an answer yet.");
});

test("the shape says what is known", () => {
  const shape = {
    operation_class: "key_lookup",
    row_bytes: 128,
    data_bytes: 1073741824,
    pool_bytes: null,
    clients: 1,
    base_command: null,
  };
  expect(shapeText(shape)).toMatch(/^rows of 128 B, 1 client, 1\sGiB of data$/);
  expect(shapeText({ ...shape, row_bytes: null, operation_class: "script", clients: null })).toMatch(
    /^own script, 1\sGiB of data$/,
  );
});
