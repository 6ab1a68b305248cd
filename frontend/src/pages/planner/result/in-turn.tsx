import { type ReactNode, startTransition, useEffect, useState } from "react";
import { inIdleTime } from "@/lib/idle-queue";

/**
 * Draws what it is given first at once, and every newer one in its turn: one picture per idle moment, so that a key finds
 * the main thread free. The order is that of the page. A newer one takes the place of one that was not drawn yet.
 */
export function InTurn({ children }: { children: ReactNode }) {
  const [shown, show] = useState(children);
  useEffect(() => {
    if (shown === children) return;
    return inIdleTime(() => startTransition(() => show(children)));
  }, [shown, children]);
  return shown;
}
