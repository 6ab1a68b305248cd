import { z } from "zod";

/** What the addresses of the pages hold. A bad value falls back, so that an old or cut-off link still opens. */

/** Only a path of this dashboard, so that a link cannot send a reader elsewhere after the login. */
const localPath = z
  .string()
  .regex(/^\/(?![/\\])/)
  .optional()
  .catch(undefined);

export const loginSearch = z.object({ next: localPath });

export const NODE_KINDS = ["any", "physical", "virtual"] as const;
export const NODE_POOLS = ["any", "reserved", "none"] as const;

/** The longest name that a node, a token or a scenario can have. */
export const NAME_CHARACTERS = 253;

export const nodesSearch = z.object({
  q: z.string().max(NAME_CHARACTERS).optional().catch(undefined),
  kind: z.enum(NODE_KINDS).optional().catch(undefined),
  pools: z.enum(NODE_POOLS).optional().catch(undefined),
});

export const compareSearch = z.object({
  runs: z.array(z.string()).max(6).optional().catch(undefined),
  layout: z.string().optional().catch(undefined),
});

export const plannerSearch = z.object({
  node: z.string().optional().catch(undefined),
  /** A saved scenario that is open. */
  saved: z.string().optional().catch(undefined),
  /** The form, as the planner's model keeps it. Read leniently there. */
  form: z.unknown().optional(),
});
