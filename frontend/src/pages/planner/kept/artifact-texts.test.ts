import { describe, expect, test } from "vitest";
import { kindTitle, whatItDoes } from "./artifact-texts";

describe("a file of a plan", () => {
  test("is named as its own documentation names it", () => {
    expect(kindTitle("eks_user_data")).toBe("EKS user data");
    expect(kindTitle("tmpfiles")).toBe("tmpfiles.d");
    expect(kindTitle("thp_tmpfiles")).toBe("tmpfiles.d for THP");
  });

  test("of one of several databases says whose it is", () => {
    expect(kindTitle("postgresql_conf-orders")).toBe("postgresql.conf: orders");
    expect(kindTitle("postgresql_conf-orders-eu")).toBe("postgresql.conf: orders-eu");
  });

  test("that is not known here is named by its kind", () => {
    expect(kindTitle("new_engine-file")).toBe("New engine file");
    expect(kindTitle("sysctls")).toBe("Sysctls");
  });

  test("says in a sentence what must be restarted", () => {
    expect(whatItDoes({ summary: "Reserves the pools.", restart: "nodes" })).toBe(
      "Reserves the pools. It takes effect when the nodes are replaced.",
    );
    expect(whatItDoes({ summary: "", restart: "nothing" })).toBe("Nothing is restarted.");
  });
});
