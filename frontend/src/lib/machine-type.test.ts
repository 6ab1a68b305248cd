import { expect, it } from "vitest";
import { shortMachineType } from "./machine-type";

it.each([
  ["Intel(R) Xeon(R) Platinum 8481C, KVM", "Xeon 8481C, KVM"],
  ["Intel(R) Xeon(R) Gold 6448Y", "Xeon 6448Y"],
  ["Intel(R) Xeon(R) Processor, guest", "Xeon Processor, guest"],
  ["AMD EPYC 9R14, KVM", "AMD EPYC 9R14, KVM"],
  ["Intel(R) Xeon(R) CPU @ 2.20GHz, KVM", "Xeon, KVM"],
  [null, "unknown"],
])("names %s in short", (brand, short) => {
  expect(shortMachineType(brand)).toBe(short);
});
