import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { ApiError } from "@/api/problem";
import { AttentionIcon } from "@/components/ui/icons";
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
        state.data !== undefined && state.error instanceof ApiError && state.error.status === 0,
    });
  const isAway = useSyncExternalStore(
    (changed) => cache.subscribe(changed),
    () => stale().length > 0,
  );
  if (!isAway) return null;
  return (
    <div className={classes.away} role="alert">
      <AttentionIcon />
      <span>The server does not answer. What is shown was loaded before.</span>
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
