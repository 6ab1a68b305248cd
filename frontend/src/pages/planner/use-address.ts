import { useRouter } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { PlannerSearch } from "@/search";
import type { Draft } from "./form/draft";

/** The address follows a pause in the edits: browsers bound how often it may be written. */
const WRITTEN_AFTER_MS = 250;
/** The router hears of it later still: it draws the page anew. */
const ROUTED_AFTER_MS = 600;

/** What the address holds of an edited form. */
interface Kept {
  node?: string;
  form?: Draft["form"];
}

/**
 * What is not saved stands in the address, so that reload, back and a link keep it. It is written past the router first,
 * which costs no drawing; the router follows once the edits have come to rest. Gives the address with all edits.
 */
export function useAddress({ form, nodeId }: Draft, isDirty: boolean): () => string {
  const router = useRouter();
  const { pathname, search } = router.latestLocation;
  const [home] = useState({ pathname, saved: (search as PlannerSearch).saved });
  const kept = useMemo<Kept>(
    () => (isDirty ? { node: nodeId ?? undefined, form } : { node: undefined, form: undefined }),
    [form, nodeId, isDirty],
  );
  const unwritten = useRef<Kept | null>(null);

  /** False while another page or another scenario is being opened: its address is not this form's. */
  const isHere = useCallback(() => {
    const { pathname: path, search: now } = router.latestLocation;
    return path === home.pathname && (now as PlannerSearch).saved === home.saved;
  }, [router, home]);

  const write = useCallback(() => {
    const newest = unwritten.current;
    if (!newest || !isHere()) return;
    unwritten.current = null;
    const { href } = router.buildLocation({ to: "/planner", search: { saved: home.saved, ...newest } });
    // The router replaces this function of `window.history` by one that tells it of the change.
    History.prototype.replaceState.call(window.history, window.history.state, "", href);
  }, [router, home, isHere]);

  useEffect(() => {
    unwritten.current = kept;
    const writing = setTimeout(write, WRITTEN_AFTER_MS);
    const routing = setTimeout(() => {
      if (!isHere()) return;
      void router.navigate({
        to: "/planner",
        search: { saved: home.saved, ...kept },
        replace: true,
        resetScroll: false,
      });
    }, ROUTED_AFTER_MS);
    return () => {
      clearTimeout(writing);
      clearTimeout(routing);
    };
  }, [kept, router, home, isHere, write]);

  useEffect(() => {
    // Whatever leads away right after a key: a link, a reload, a closed tab.
    const leaving = ["click", "pagehide", "beforeunload"] as const;
    for (const event of leaving) window.addEventListener(event, write, { capture: true });
    return () => {
      for (const event of leaving) window.removeEventListener(event, write, { capture: true });
    };
  }, [write]);

  return useCallback(() => {
    write();
    return window.location.href;
  }, [write]);
}
