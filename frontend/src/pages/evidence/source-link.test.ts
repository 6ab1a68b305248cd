import { expect, it } from "vitest";
import { sourceUrl } from "./source-link";

it.each([
  ["github.com/cmuparlay/parlaylib/issues/71", "https://github.com/cmuparlay/parlaylib/issues/71"],
  ["research.google/pubs/pub50370 (Temeraire, OSDI 2021)", "https://research.google/pubs/pub50370"],
  ["reviews.freebsd.org D25237: superpages on powerpc64 HPT", "https://reviews.freebsd.org/D25237"],
  // A host without a path is no place to read a result.
  ["shipilev.net, JVM Anatomy Quarks: Transparent Huge Pages, 2017", null],
  ["Linux page size and database performance on Kubernetes, 2026 (allpcb.com, besthub.dev)", null],
  ["Mitosis, ASPLOS 2020", null],
])("%s is read at %s", (source, url) => {
  expect(sourceUrl(source)).toBe(url);
});
