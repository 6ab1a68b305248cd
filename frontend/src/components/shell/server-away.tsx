import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { ApiError } from "@/api/problem";
import { AttentionIcon } from "@/components/ui/icons";
import { formatRelative } from "@/lib/units";
import { useNow } from "@/lib/use-now";
import classes from "./app-layout.module.css";

/** Says that what is shown is what was loaded before, while the server does not answer. */
export function ServerAway() {
  const client = useQueryClient();
  const cache = client.getQueryCache();
  // Queries without data show the error in their own place.
  const stale = () =>
    cache.findAll({
      type: "active",
      predicate: ({ state }) =>
        state.data !== undefined &&
        state.error instanceof ApiError &&
        (state.error.status === 0 || state.error.status >= 500),
    });
  // One text for the whole state, so that React compares it by value.
  const state = useSyncExternalStore(
    (changed) => cache.subscribe(changed),
    () => {
      const queries = stale();
      if (queries.length === 0) return "";
      const isDown = queries.some(({ state: { error } }) => error instanceof ApiError && error.status === 0);
      return `${isDown ? "down" : "failing"} ${Math.min(...queries.map(({ state: { dataUpdatedAt } }) => dataUpdatedAt))}`;
    },
  );
  const now = useNow();
  if (state === "") return null;
  const [kind, loadedAt] = state.split(" ");
  const isDown = kind === "down";
  const since = loadedAt ? new Date(Number(loadedAt)).toISOString() : null;
  return (
    <div className={classes.away}>
      <AttentionIcon />
      <span>
        {/* The time that ticks is outside of the alert, or a screen reader would say it each second. */}
        <span role="alert">
          {isDown ? "The server does not answer." : "The server cannot answer at the moment."} What is shown
          was loaded before
        </span>
        {since ? `, ${formatRelative(since, now)}` : ""}.
      </span>
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => {
          for (const query of stale()) void query.fetch();
        }}
      >
        Try again
      </Button>
    </div>
  );
}
