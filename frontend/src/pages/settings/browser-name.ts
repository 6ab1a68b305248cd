const BROWSERS: readonly [mark: RegExp, name: string][] = [
  [/\bEdg\/(\d+)/, "Edge"],
  [/\bFirefox\/(\d+)/, "Firefox"],
  [/\b(?:Headless)?Chrom(?:e|ium)\/(\d+)/, "Chromium"],
  [/\bVersion\/(\d+).*Safari/, "Safari"],
];
const SYSTEMS: readonly [mark: RegExp, name: string][] = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"],
];

/** "Firefox 130 on Linux" from a User-Agent; its first words where it names no browser; null where there is none. */
export function browserName(userAgent: string | null): string | null {
  if (!userAgent) return null;
  const system = SYSTEMS.find(([mark]) => mark.test(userAgent))?.[1];
  for (const [mark, name] of BROWSERS) {
    const version = mark.exec(userAgent)?.[1];
    if (version) return system ? `${name} ${version} on ${system}` : `${name} ${version}`;
  }
  return userAgent.slice(0, 40);
}
