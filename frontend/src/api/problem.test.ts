import { describe, expect, it } from "vitest";
import { ApiError, asApiError, PartError, toApiError } from "./problem";

const problem = {
  type: "https://hugeplan.dev/problems/validation",
  title: "The request is not valid",
  status: 422,
  detail: "databases[0].settings.shared_buffers: '8 bananas' is not a size",
  request_id: "req-1",
  errors: [
    { field: "databases.0.settings.shared_buffers", value: "8 bananas", expected: "a size such as 8GB" },
  ],
};

describe("toApiError", () => {
  it("reads a problem document", () => {
    const error = toApiError({ status: 422 }, problem);
    expect(error).toBeInstanceOf(ApiError);
    expect(error.type).toBe(problem.type);
    expect(error.requestId).toBe("req-1");
    expect(error.fieldErrors).toEqual(problem.errors);
  });
  it("survives a body that is not a problem", () => {
    const error = toApiError(
      { status: 502, headers: new Headers({ "x-request-id": "abc" }) },
      "<html>bad gateway</html>",
    );
    expect(error.title).toBe("The server could not answer");
    expect(error.requestId).toBe("abc");
    expect(error.fieldErrors).toEqual([]);
  });
  it("drops malformed field errors", () => {
    expect(toApiError({ status: 422 }, { ...problem, errors: ["x", { field: 3 }] }).fieldErrors).toEqual([
      { field: "", value: undefined, expected: "another value" },
    ]);
  });
});

it("wraps whatever was thrown", () => {
  expect(asApiError(new Error("boom")).detail).toBe("boom");
  expect(asApiError(new PartError(null, "away")).title).toBe("The server does not answer");
  expect(asApiError(new PartError(null, "missing")).title).not.toBe("The server does not answer");
  expect(asApiError("x").status).toBe(0);
});
