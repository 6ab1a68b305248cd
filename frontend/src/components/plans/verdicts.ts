import type { Verdict } from "@/api/types";
import type { State } from "@/components/ui/badges";

export const VERDICTS: Record<Verdict["answer"], { text: string; state: State }> = {
  do_it: { text: "Do it", state: "ok" },
  do_it_after: { text: "Do it after", state: "attention" },
  dont: { text: "Don't", state: "wrong" },
  not_enough_known: { text: "Not enough known", state: "unknown" },
};
