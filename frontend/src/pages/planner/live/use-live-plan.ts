import { replaceEqualDeep } from "@tanstack/react-query";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { fetchPreview, type PreviewInput } from "@/api/plans";
import { asApiError } from "@/api/problem";
import type { PlanPreview } from "@/api/types";
import { Asker } from "./asker";

interface LivePlan {
  /** The newest plan that could be computed for this node; null before the first. */
  shown: PlanPreview | null;
  /** What was asked last: `shown` answers it unless there is an error. */
  input: PreviewInput;
  /** True while `shown` is not the plan of what stands in the form. */
  isStale: boolean;
  isWorking: boolean;
  error: unknown;
  retry: () => void;
}

interface Answered {
  /** What was answered last, with a plan or with an error. */
  input: PreviewInput | null;
  error: unknown;
  /** The newest plan, and the node that it was computed for. */
  shown: PlanPreview | null;
  shownNodeId: string | null;
}

/** How long to wait before a server that did not answer is asked again. */
const ASKED_AGAIN_MS = 2000;

const NOTHING: Answered = { input: null, error: null, shown: null, shownNodeId: null };

/**
 * The plan of what stands in the form. A plan of another node is never shown. What a new plan has in common with the
 * last one stays the same object, so that parts of the page that show it stay as they are.
 */
export function useLivePlan(input: PreviewInput): LivePlan {
  const [answered, setAnswered] = useState(NOTHING);
  const [asker] = useState(
    () =>
      new Asker<PreviewInput, PlanPreview>({
        request: fetchPreview,
        keyOf: (of) => JSON.stringify(of),
        isUseless: (old, wanted) => old.nodeId !== wanted.nodeId,
        answered: (of, plan, error) =>
          setAnswered((old) =>
            plan
              ? {
                  input: of,
                  error: null,
                  shown: old.shownNodeId === of.nodeId ? replaceEqualDeep(old.shown, plan) : plan,
                  shownNodeId: of.nodeId,
                }
              : { ...old, input: of, error },
          ),
      }),
  );
  // Before the page is painted: the server works while the browser draws what was typed.
  useLayoutEffect(() => asker.want(input), [asker, input]);
  useEffect(() => () => asker.stop(), [asker]);
  const newest = useRef(input);
  newest.current = input;
  const retry = useCallback(() => asker.want(newest.current), [asker]);

  // A server that is away or starts comes back: what stands in the form is asked for until it answers.
  const { error: refused } = answered;
  useEffect(() => {
    const { status } = refused === null ? { status: 200 } : asApiError(refused);
    if (status !== 0 && status < 502) return;
    const again = setTimeout(retry, ASKED_AGAIN_MS);
    return () => clearTimeout(again);
  }, [refused, retry]);

  const isOfThisNode = answered.shown !== null && answered.shownNodeId === input.nodeId;
  const isBehind = answered.input !== input;
  const hasError = answered.error !== null && answered.input?.nodeId === input.nodeId;
  return {
    shown: isOfThisNode ? answered.shown : null,
    input: answered.input ?? input,
    isStale: isBehind || hasError,
    isWorking: isBehind,
    error: hasError ? answered.error : null,
    retry,
  };
}
