const SERVER =
  /^([^@]+)@(?:node|(cgroup|systemd|container|pod):(.+?))(?::(?:(\d{1,5})|([0-9a-f]{12})))?(?:#([0-9a-f]{12}))?(?:#\d+)?$/;

/**
 * What a finding is about, as a person calls it: the key of a running server becomes its engine, unit and port. The
 * service's sentences write the same; both are tested with the vectors of units.golden.json.
 */
export function subjectWords(subject: string): string {
  const found = SERVER.exec(subject);
  if (!found) return subject;
  const [, engine, kind, path = "", port, tail, own] = found;
  let unit = path.slice(path.lastIndexOf("/") + 1);
  if (kind === "container" && unit.length >= 32) unit = `container ${unit.slice(0, 12)}`;
  if (kind === "pod") unit = `pod ${unit}`;
  const place = own ?? tail;
  return [
    unit ? `${engine} in ${unit}` : engine,
    port && `port ${port}`,
    place && `data directory checksum ${place}`,
  ]
    .filter(Boolean)
    .join(", ");
}
