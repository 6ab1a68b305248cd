import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { type PreviewInput, planPreviewQuery } from "@/api/plans";
import type { PlanPreview } from "@/api/types";

/** A request that takes longer than this is given up for the newest input. */
const GIVE_UP_MS = 300;
/** The server bounds requests per minute; below this pace a long drag stays inside the bound. */
const PACE_MS = 40;

export interface LivePlan {
  /** The newest plan that could be computed for this node; null before the first. */
  shown: PlanPreview | null;
  /** What `shown` was asked with. */
  input: PreviewInput;
  /** True while `shown` is not the plan of what stands in the form. */
  isStale: boolean;
  isWorking: boolean;
  error: unknown;
  retry: () => void;
}

/**
 * The plan of what stands in the form, without a fixed wait: an input is sent at once when no request is under way, else
 * when its answer arrives; a slow request is dropped for the newest input. A plan of another node is never shown.
 */
export function useLivePlan(input: PreviewInput): LivePlan {
  const [asked, setAsked] = useState(input);
  const askedAt = useRef(Number.NEGATIVE_INFINITY);
  const preview = useQuery(planPreviewQuery(asked));
  const isBehind = asked !== input;
  const isFetching = preview.isFetching;
  useEffect(() => {
    if (!isBehind) return;
    const ask = () => {
      askedAt.current = performance.now();
      setAsked(input);
    };
    const since = performance.now() - askedAt.current;
    const wait = Math.max(isFetching ? GIVE_UP_MS - since : 0, PACE_MS - since);
    if (wait <= 0) {
      ask();
      return;
    }
    const timer = setTimeout(ask, wait);
    return () => clearTimeout(timer);
  }, [input, isBehind, isFetching]);

  const shown = useLastGood(preview.data ?? null, asked.nodeId, input.nodeId);
  return {
    shown,
    input: asked,
    isStale: isBehind || preview.isPlaceholderData || preview.isError,
    isWorking: isBehind || isFetching,
    error: preview.isError ? preview.error : null,
    retry: () => void preview.refetch(),
  };
}

/** Keeps a plan in sight while an input is being corrected, but never beside another node than its own. */
function useLastGood(
  data: PlanPreview | null,
  dataNodeId: string | null,
  nodeId: string | null,
): PlanPreview | null {
  const [last, setLast] = useState({ data, nodeId: dataNodeId });
  if (data !== null && (data !== last.data || dataNodeId !== last.nodeId))
    setLast({ data, nodeId: dataNodeId });
  if (data !== null && dataNodeId === nodeId) return data;
  return last.nodeId === nodeId ? last.data : null;
}
