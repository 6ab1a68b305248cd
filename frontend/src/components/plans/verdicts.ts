import type { Verdict } from "@/api/types";
import type { State } from "@/components/ui/badges";

interface Look {
  text: string;
  state: State;
}

const VERDICTS: Record<Verdict["answer"], Look> = {
  do_it: { text: "Do it", state: "ok" },
  do_it_after: { text: "Do it after", state: "attention" },
  dont: { text: "Don't", state: "wrong" },
  not_enough_known: { text: "Not enough known", state: "unknown" },
};

/** Nothing is wrong with a plan that has nothing to install: it is not red. */
const NOTHING_TO_DO: Look = { text: "Nothing to change", state: "ok" };

interface Pages {
  now: number | null;
  planned: number;
}

/** How an answer looks beside what its plan changes, per pool or page size, and whether it fits. */
export function verdictLook(answer: Verdict["answer"], changes: readonly Pages[], fits: boolean): Look {
  const changesNothing = fits && changes.every(({ now, planned }) => now === planned);
  return answer === "dont" && changesNothing ? NOTHING_TO_DO : VERDICTS[answer];
}
