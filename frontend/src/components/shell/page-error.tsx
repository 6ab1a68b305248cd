import { type ErrorComponentProps, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";
import { serverAnswers } from "@/api/load-part";
import { PartError } from "@/api/problem";
import { ErrorState } from "@/components/ui/states";

/** When the page last loaded itself again: a part that stays missing must not load it over and over. */
const RELOADED_KEY = "hugeplan:reloaded-for-a-part";
const RELOAD_AT_MOST_EVERY_MS = 60_000;
const ASK_EVERY_MS = 2000;

/** Loads the whole page again, once there is somebody to load it from. What was typed is in the address. */
async function reloadPage(): Promise<void> {
  if (!(await serverAnswers())) return;
  sessionStorage.setItem(RELOADED_KEY, String(Date.now()));
  window.location.reload();
}

/** A page that failed, inside the shell. One that could not be loaded comes by itself when the server is back. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const isPart = error instanceof PartError;
  useEffect(() => {
    if (!isPart) return;
    const timer = setInterval(() => {
      if (Date.now() - Number(sessionStorage.getItem(RELOADED_KEY)) >= RELOAD_AT_MOST_EVERY_MS)
        void reloadPage();
    }, ASK_EVERY_MS);
    return () => clearInterval(timer);
  }, [isPart]);
  const retry = () => {
    if (isPart) return void reloadPage();
    reset();
    void router.invalidate();
  };
  return <ErrorState error={error} onRetry={retry} />;
}
