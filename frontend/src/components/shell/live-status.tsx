import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { formatRelative } from "@/lib/units";
import { useNow } from "@/lib/use-now";
import classes from "./live-status.module.css";
import { type LiveState, LiveStream } from "./live-stream";

/** Holds the tab's stream of changes, and says whether it stands: what is shown without it may be half a minute old. */
export default function LiveStatus() {
  const queries = useQueryClient();
  const [state, setState] = useState<LiveState>({ kind: "connecting" });
  useEffect(() => {
    const stream = new LiveStream(queries, setState);
    const follow = () => (document.visibilityState === "visible" ? stream.start() : stream.stop());
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      stream.stop();
    };
  }, [queries]);
  return (
    <div className={classes.status} data-live={state.kind}>
      <span className={classes.mark} aria-hidden="true" />
      {state.kind === "away" ? <Away since={state.since} /> : state.kind === "live" ? "Live" : "Connecting"}
    </div>
  );
}

function Away({ since }: { since: number }) {
  const now = useNow();
  return <>Not live since {formatRelative(new Date(since).toISOString(), now)}</>;
}
