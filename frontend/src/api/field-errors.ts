import type { FieldError } from "./problem";

/** `scenario.databases[0].settings.x` and `databases.0.settings.x` are the same field. */
export function fieldPath(path: string): string {
  return path
    .replace(/\[(\d+)\]/g, ".$1")
    .replace(/^(body\.)?(scenario\.)?/, "")
    .replace(/^\./, "");
}

/** Finds the message for an input, and tells which errors no input showed. */
export class FieldErrors {
  private readonly byPath: Map<string, FieldError>;

  constructor(errors: readonly FieldError[]) {
    this.byPath = new Map(errors.map((error) => [fieldPath(error.field), error]));
  }

  /** The text for the input at `path`, or undefined when it has no error. */
  at(path: string): string | undefined {
    const error = this.byPath.get(path);
    // What was perhaps meant is a question, and has its own end.
    return error && `Expected ${error.expected}${error.expected.endsWith("?") ? "" : "."}`;
  }

  /** Whether an input beneath the path has an error. */
  has(under: string): boolean {
    return [...this.byPath.keys()].some((path) => path.startsWith(under));
  }

  /** Errors whose path no listed input has; they are shown above the form. */
  without(paths: ReadonlySet<string>): FieldError[] {
    return [...this.byPath.entries()].filter(([path]) => !paths.has(path)).map(([, error]) => error);
  }
}
