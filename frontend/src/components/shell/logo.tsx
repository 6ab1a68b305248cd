/** Small pages beside one huge page. */
export function Logo({ size }: { size: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" fill="var(--hp-accent)" />
      <g fill="var(--hp-surface)">
        <rect x="6" y="6" width="4" height="4" />
        <rect x="12" y="6" width="4" height="4" />
        <rect x="6" y="12" width="4" height="4" />
        <rect x="12" y="12" width="4" height="4" />
        <rect x="18" y="6" width="8" height="10" />
        <rect x="6" y="18" width="20" height="8" />
      </g>
    </svg>
  );
}
