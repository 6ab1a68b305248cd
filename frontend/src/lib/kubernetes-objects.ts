type Json = Record<string, unknown>;

const APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** Of a status what no rule reads: the images of a node, and what became of each container of a pod. */
const UNREAD = new Set([
  "images",
  "containerStatuses",
  "initContainerStatuses",
  "ephemeralContainerStatuses",
  "podIPs",
]);

/**
 * An object without what no rule reads and what is most of what kubectl prints: who set which field, and how each
 * container fares. A cluster of some thousand pods would be too large for one request with it.
 */
export function slimObject(object: Json): Json {
  const { managedFields: _fields, annotations, ...metadata } = (object.metadata ?? {}) as Json;
  const { [APPLIED]: _applied, ...kept } = (annotations ?? {}) as Json;
  const status = Object.entries((object.status ?? {}) as Json).filter(([name]) => !UNREAD.has(name));
  return {
    ...object,
    metadata: { ...metadata, annotations: kept },
    ...(object.status ? { status: Object.fromEntries(status) } : {}),
  };
}

/** The text of a dump without the same; another text as it is, as the service says what is wrong with it. */
export function slimDump(text: string): string {
  try {
    const found = JSON.parse(text) as Json | null;
    if (!Array.isArray(found?.items)) return text;
    return JSON.stringify({ ...found, items: (found.items as Json[]).map(slimObject) });
  } catch {
    return text;
  }
}
