import { replaceEqualDeep, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { type PreviewInput, planPreviewQuery } from "@/api/plans";
import type { PlanPreview } from "@/api/types";

/** A request that takes longer than this is given up for the newest input. */
const GIVE_UP_MS = 300;
/** The server bounds requests per minute; below this pace a long drag stays inside the bound. */
const PACE_MS = 40;

export interface LivePlan {
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

/** Asks for one plan at a time: at once when nothing is under way, else when the answer arrives or is given up. */
class Asker {
  private wanted: PreviewInput | null = null;
  private flying: PreviewInput | null = null;
  private askedAtMs = Number.NEGATIVE_INFINITY;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly request: (input: PreviewInput) => Promise<PlanPreview>,
    private readonly drop: (input: PreviewInput) => void,
    private readonly answered: (input: PreviewInput, plan: PlanPreview | null, error: unknown) => void,
  ) {}

  want(input: PreviewInput): void {
    this.wanted = input;
    clearTimeout(this.timer);
    const sinceMs = performance.now() - this.askedAtMs;
    const waitMs = Math.max(this.flying ? GIVE_UP_MS - sinceMs : 0, PACE_MS - sinceMs);
    if (waitMs <= 0) this.ask(input);
    else this.timer = setTimeout(() => this.ask(input), waitMs);
  }

  stop(): void {
    clearTimeout(this.timer);
    const { flying } = this;
    this.flying = null;
    this.wanted = null;
    this.askedAtMs = Number.NEGATIVE_INFINITY;
    if (flying) this.drop(flying);
  }

  private ask(input: PreviewInput): void {
    const { flying } = this;
    this.flying = input;
    this.askedAtMs = performance.now();
    if (flying) this.drop(flying);
    this.request(input).then(
      (plan) => this.arrived(input, plan, null),
      (error: unknown) => this.arrived(input, null, error),
    );
  }

  private arrived(input: PreviewInput, plan: PlanPreview | null, error: unknown): void {
    if (this.flying !== input) return;
    this.flying = null;
    this.answered(input, plan, error);
    if (this.wanted && this.wanted !== input) this.want(this.wanted);
  }
}

/**
 * The plan of what stands in the form, without a fixed wait: an input is sent at once when no request is under way, else
 * when its answer arrives; a slow request is dropped for the newest input. A plan of another node is never shown. What a
 * new plan has in common with the last one stays the same object, so that parts of the page that show it stay as they are.
 */
export function useLivePlan(input: PreviewInput): LivePlan {
  const queries = useQueryClient();
  const [answered, setAnswered] = useState<Answered>({
    input: null,
    error: null,
    shown: null,
    shownNodeId: null,
  });
  const asker = useRef<Asker | null>(null);
  asker.current ??= new Asker(
    (wanted) => queries.fetchQuery(planPreviewQuery(wanted)),
    (dropped) => void queries.cancelQueries({ queryKey: planPreviewQuery(dropped).queryKey, exact: true }),
    (of, plan, error) =>
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
  );
  // Before the page is painted: the server works while the browser draws what was typed.
  useLayoutEffect(() => asker.current?.want(input), [input]);
  useEffect(() => () => asker.current?.stop(), []);
  const newest = useRef(input);
  newest.current = input;
  const retry = useCallback(() => asker.current?.want(newest.current), []);

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
