/** One field the server refused: its path, the value it saw and what it expected. */
export interface FieldError {
  field: string;
  value: unknown;
  expected: string;
}

/** An RFC 9457 problem as an Error. Network failures use status 0. */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly title: string;
  readonly detail: string | null;
  readonly requestId: string | null;
  readonly fieldErrors: readonly FieldError[];

  constructor(init: {
    status: number;
    type: string;
    title: string;
    detail: string | null;
    requestId: string | null;
    fieldErrors?: readonly FieldError[];
  }) {
    super(init.detail ?? init.title);
    this.name = "ApiError";
    this.status = init.status;
    this.type = init.type;
    this.title = init.title;
    this.detail = init.detail;
    this.requestId = init.requestId;
    this.fieldErrors = init.fieldErrors ?? [];
  }

  get isUnauthorized(): boolean {
    return this.status === 401;
  }

  get isNotFound(): boolean {
    return this.status === 404;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function readFieldErrors(value: unknown): FieldError[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).map((entry) => ({
    field: text(entry.field) ?? "",
    value: entry.value,
    expected: text(entry.expected) ?? "another value",
  }));
}

/** Reads a failed response's body. Anything that is not problem+json (a proxy's page) still gives a usable error. */
export function toApiError(response: { status: number; headers?: Headers }, body: unknown): ApiError {
  const headerId = response.headers?.get("x-request-id") ?? null;
  if (isRecord(body) && text(body.title)) {
    return new ApiError({
      status: response.status,
      type: text(body.type) ?? "about:blank",
      title: text(body.title) ?? "",
      detail: text(body.detail),
      requestId: text(body.request_id) ?? headerId,
      fieldErrors: readFieldErrors(body.errors),
    });
  }
  return new ApiError({
    status: response.status,
    type: "about:blank",
    title: response.status >= 500 ? "The server could not answer" : "The request was refused",
    detail: `The server answered with status ${response.status} and no explanation.`,
    requestId: headerId,
  });
}

/** The server could not be reached at all. */
export function networkError(): ApiError {
  return new ApiError({
    status: 0,
    type: "about:blank",
    title: "The server does not answer",
    detail: "No connection to the hugeplan server. Check that it is running, then try again.",
    requestId: null,
  });
}

const CHUNK_FAILED = /preload CSS|dynamically imported module|importing a module script/i;

/** Whether a browser or Vite says that a file of the dashboard did not arrive. */
export function isChunkError(error: unknown): boolean {
  return error instanceof Error && CHUNK_FAILED.test(error.message);
}

/**
 * A part of the dashboard itself could not be loaded: the server is `away`, or answers and does not send it (`missing`),
 * as after an upgrade. The message is not the browser's: at that one the router loads the whole page, which would leave
 * nothing but the browser's own error page while the server is away.
 */
export class PartError extends Error {
  constructor(
    cause: unknown,
    readonly why: "away" | "missing",
  ) {
    super(`A part of the dashboard could not be loaded: ${why}`, { cause });
    this.name = "PartError";
  }
}

/** Any thrown value as an ApiError, so that one component can show them all. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof PartError) {
    if (error.why === "away") return networkError();
    return new ApiError({
      status: 0,
      type: "about:blank",
      title: "A part of the dashboard could not be loaded",
      detail: "The server answers but does not send it. After an upgrade, loading the page again helps.",
      requestId: null,
    });
  }
  return new ApiError({
    status: 0,
    type: "about:blank",
    title: "This page failed",
    detail: error instanceof Error ? error.message : "Something unexpected was thrown.",
    requestId: null,
  });
}
