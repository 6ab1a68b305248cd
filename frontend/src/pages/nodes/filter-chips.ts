import type { FleetSummary } from "@/api/types";
import { shortMachineType } from "@/lib/machine-type";
import type { NodeSelection } from "@/search";

interface Chip {
  key: string;
  text: string;
  /** The change that takes the condition away. */
  without: Partial<NodeSelection>;
}

const PLAN_WORDS = {
  match: "as planned",
  short: "pages missing",
  idle: "more pages than planned",
  drifted: "drifted",
  none: "none",
};

/** One chip per condition of a selection; a label is a condition of its own. */
export function selectionChips(selection: NodeSelection, fleet: FleetSummary | undefined): Chip[] {
  const { q, label, machine_type, group, architecture, finding, state, plan_state, stale, synthetic } =
    selection;
  const found = fleet?.findings.find((one) => one.code === finding && (!state || one.state === state));
  const chips: (Chip | undefined | false | "")[] = [
    q && { key: "q", text: `name: ${q}`, without: { q: undefined } },
    (finding || state) && {
      key: "finding",
      text: `problem: ${found?.title ?? finding ?? `anything ${state === "wrong" ? "wrong" : "for attention"}`}`,
      without: { finding: undefined, state: undefined },
    },
    machine_type && {
      key: "machine_type",
      text: `machine: ${shortMachineType(machine_type)}`,
      without: { machine_type: undefined },
    },
    group && { key: "group", text: "one group of like nodes", without: { group: undefined } },
    architecture && {
      key: "architecture",
      text: `architecture: ${architecture}`,
      without: { architecture: undefined },
    },
    plan_state && {
      key: "plan_state",
      text: `plan in force: ${PLAN_WORDS[plan_state]}`,
      without: { plan_state: undefined },
    },
    stale !== undefined && {
      key: "stale",
      text: stale ? "not reporting" : "reporting",
      without: { stale: undefined },
    },
    synthetic !== undefined && {
      key: "synthetic",
      text: synthetic ? "synthetic" : "real machines",
      without: { synthetic: undefined },
    },
    ...(label ?? []).map((one) => {
      const rest = (label ?? []).filter((other) => other !== one);
      return {
        key: `label ${one}`,
        text: `label: ${one}`,
        without: { label: rest.length > 0 ? rest : undefined },
      };
    }),
  ];
  return chips.filter((chip): chip is Chip => Boolean(chip));
}
