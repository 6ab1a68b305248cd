import type { NodeSelection } from "@/search";

const PLAN_WORDS = {
  match: "as planned",
  short: "with pages of their plan missing",
  idle: "with more pages than planned",
  drifted: "that differ from their plan by pool",
  none: "without a plan in force",
};

/** A selection as a sentence's object: "nodes of AMD EPYC 9R14, KVM, labelled env=prod". */
export function selectionWords(selection: NodeSelection): string {
  const parts = [
    selection.q && `named like "${selection.q}"`,
    selection.machine_type && `of ${selection.machine_type}`,
    selection.group && `of group ${selection.group}`,
    selection.architecture && `of ${selection.architecture}`,
    selection.label?.length && `labelled ${selection.label.join(", ")}`,
    selection.finding &&
      `with the finding ${selection.finding}${selection.state ? ` (${selection.state})` : ""}`,
    !selection.finding && selection.state && `with a finding of state ${selection.state}`,
    selection.plan_state && PLAN_WORDS[selection.plan_state],
    selection.stale !== undefined && (selection.stale ? "that do not report" : "that report"),
    selection.synthetic !== undefined && (selection.synthetic ? "that are synthetic" : "that are real"),
  ].filter(Boolean);
  return parts.length === 0 ? "all nodes" : `nodes ${parts.join(", ")}`;
}

/** The API's selector has `labels` where the address has `label`, and null where nothing is asked. */
export function fromSelector(
  selector: Omit<{ [K in keyof NodeSelection]?: NodeSelection[K] | null }, "label"> & { labels?: string[] },
): NodeSelection {
  const { labels, ...rest } = selector;
  const given = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  return { ...Object.fromEntries(given), ...(labels?.length ? { label: labels } : {}) };
}

export function toSelector({ label, ...rest }: NodeSelection) {
  return { ...rest, labels: label ?? [] };
}

/** A scenario without its node: the facts come from the nodes that are planned. */
export function withoutNode<T extends object>(scenario: T): Omit<T, "node"> {
  const { node: _node, ...rest } = scenario as T & { node?: unknown };
  return rest;
}
