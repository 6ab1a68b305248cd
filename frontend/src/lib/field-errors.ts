import type { FieldError } from "@/api/problem";

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
    return error && `Expected ${error.expected}.`;
  }

  /** Errors whose path no listed input has; they are shown above the form. */
  without(paths: ReadonlySet<string>): FieldError[] {
    return [...this.byPath.entries()].filter(([path]) => !paths.has(path)).map(([, error]) => error);
  }
}

/** The paths that the form has an input for. */
export function inputPaths(
  databases: readonly { settings: Record<string, string> }[],
  tenants: number,
): Set<string> {
  const paths = new Set(["node.memory", "node.cpus", "node.arch"]);
  for (const name of ["provider", "kube_reserved", "system_reserved", "eviction_hard", "max_pods"]) {
    paths.add(`reservations.${name}`);
  }
  for (const name of ["slack", "risk", "reserve_at", "free_margin"]) paths.add(`policy.${name}`);
  databases.forEach(({ settings }, index) => {
    const names = [
      "name",
      "engine",
      "version",
      "connections",
      "page_size",
      "numa_node",
      "pod_hugepages_limit",
    ];
    const workload = [
      "row_bytes",
      "working_set",
      "active_connections",
      "operations_per_second_per_busy_core",
      "benefit_table",
    ];
    for (const name of names) paths.add(`databases.${index}.${name}`);
    for (const name of workload) paths.add(`databases.${index}.workload.${name}`);
    for (const name of Object.keys(settings)) paths.add(`databases.${index}.settings.${name}`);
  });
  for (let index = 0; index < tenants; index += 1) {
    for (const name of ["name", "kind", "count", "request", "limit", "numa_node"])
      paths.add(`tenants.${index}.${name}`);
  }
  return paths;
}
