import { expect, it } from "vitest";
import { termParts } from "./with-terms";

const terms = (text: string) =>
  termParts(text).flatMap((part) => (typeof part === "string" ? [] : [`${part.term}: ${part.text}`]));
const whole = (text: string) =>
  termParts(text)
    .map((part) => (typeof part === "string" ? part : part.text))
    .join("");

it.each([
  ["With 2M pages walks get 33 % shorter; reach does not grow.", ["page-walk: walks", "tlb-reach: reach"]],
  [
    "Release 512 × 2M on NUMA node 1, or start what should use them: the pool is idle.",
    ["numa-node: NUMA node", "huge-page-pool: pool"],
  ],
  ["8 GiB are reserved in huge pages; the pool of huge pages is in use.", ["huge-page-pool: huge pages"]],
  ["Every walker pooled its page walk.", ["page-walk: page walk"]],
  ["Measure this node first.", []],
])("explains the terms of %s once, and loses no word", (text, expected) => {
  expect(terms(text)).toEqual(expected);
  expect(whole(text)).toBe(text);
});
