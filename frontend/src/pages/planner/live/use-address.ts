import { useRouter } from "@tanstack/react-router";
import { useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import type { PlannerSearch } from "@/search";
import type { Draft } from "../draft/draft";
import { readForm } from "../draft/planner-form";
import { fromFragment, namesDraft, toFragment } from "./address";

/** The address follows a pause in the edits: browsers bound how often it may be written. */
const WRITTEN_AFTER_MS = 250;

/** The form that a fragment holds; undefined where it holds none. */
export function formInFragment(fragment: string): Draft["form"] | undefined {
  const found = fromFragment(fragment) as { form?: unknown } | null | undefined;
  return found?.form === undefined ? undefined : readForm(found.form);
}

/** Whether a fragment means to hold a draft that cannot be read: a link that was cut or changed on its way. */
export function isDamaged(fragment: string): boolean {
  return namesDraft(fragment) && formInFragment(fragment) === undefined;
}

/** The fragment of a draft; empty where everything is saved. */
function fragmentOf(draft: Draft, isDirty: boolean): string {
  return isDirty ? toFragment({ form: draft.form }) : "";
}

/**
 * What is not saved stands in the address, so that reload, back, a link and a second tab keep it. It is written past the
 * router, which would draw the page anew for it. Gives the address with all edits. `onOther` is told of a draft that
 * somebody put into the address of this page, such as a link that was pasted over it, `onDamaged` of one that cannot be
 * read, before the address is written over it.
 */
export function useAddress(
  draft: Draft,
  isDirty: boolean,
  onOther: (draft: Draft) => void,
  onDamaged: () => void,
): () => string {
  const router = useRouter();
  const [home] = useState(() => {
    const { pathname, search } = router.latestLocation;
    return { pathname, saved: (search as PlannerSearch).saved };
  });
  const newest = useRef({ draft, isDirty });
  newest.current = { draft, isDirty };
  const written = useRef<string | null>(null);

  const write = useCallback(() => {
    const { pathname, search } = router.latestLocation;
    // Another page or another scenario is being opened: its address is not this form's.
    if (pathname !== home.pathname || (search as PlannerSearch).saved !== home.saved) return;
    if (window.location.pathname !== home.pathname) return;
    const { draft: now, isDirty: dirty } = newest.current;
    const fragment = fragmentOf(now, dirty);
    const { href } = router.buildLocation({
      to: "/planner",
      // A saved scenario names its node itself, until it is edited.
      search: {
        saved: home.saved,
        node: dirty || home.saved === undefined ? (now.nodeId ?? undefined) : undefined,
      },
      hash: fragment,
    });
    written.current = fragment;
    if (href === router.history.location.href && window.location.hash.replace(/^#/, "") === fragment) return;
    // The router replaces this function of `window.history` by one that tells it of the change.
    History.prototype.replaceState.call(window.history, window.history.state, "", href);
  }, [router, home]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new draft is what is written, from the newest there is then
  useEffect(() => {
    const writing = setTimeout(write, WRITTEN_AFTER_MS);
    return () => clearTimeout(writing);
  }, [draft, isDirty, write]);

  useEffect(() => {
    // Whatever leads away right after a key: a link, a reload, a closed tab.
    const leaving = ["click", "pagehide", "beforeunload"] as const;
    for (const event of leaving) window.addEventListener(event, write, { capture: true });
    return () => {
      for (const event of leaving) window.removeEventListener(event, write, { capture: true });
    };
  }, [write]);

  const arrived = useEffectEvent(() => {
    const fragment = window.location.hash.replace(/^#/, "");
    const other = fragment === written.current ? undefined : formInFragment(fragment);
    if (isDamaged(fragment)) onDamaged();
    // A link to this very page, as in the navigation, has no draft: the one that is open stays and is written again.
    if (other === undefined) write();
    else
      onOther({
        form: other,
        nodeId: new URLSearchParams(window.location.search).get("node") ?? draft.nodeId,
      });
  });
  useEffect(() => {
    const stop = router.subscribe("onResolved", () => arrived());
    const heard = () => arrived();
    window.addEventListener("hashchange", heard);
    return () => {
      stop();
      window.removeEventListener("hashchange", heard);
    };
  }, [router]);

  return useCallback(() => {
    write();
    return window.location.href;
  }, [write]);
}
