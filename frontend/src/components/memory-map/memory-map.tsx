import { Skeleton } from "@mantine/core";
import { type CSSProperties, lazy, type RefObject, Suspense, useCallback, useRef, useState } from "react";
import { loadPart } from "@/api/load-part";
import { Disclosure } from "@/components/ui/disclosure";
import { useHint } from "@/components/ui/hint";
import { Bytes } from "@/components/ui/values";
import { formatPages } from "@/lib/page-size";
import { formatBytes, formatBytesExact, formatShare, GIB, MIB } from "@/lib/units";
import { type ActiveProps, mapRows, PartSwatch } from "./map-rows";
import classes from "./memory-map.module.css";
import { drawnBytes, type MapBar, type MapPart } from "./memory-map-types";

// The table stands behind a line, or far down: the bars are there first.
const MapTable = lazy(() => loadPart(() => import("./map-table")));

/** A part narrower than this share of the bar has its name in the table and the tooltip only. */
const LABEL_SHARE = 0.085;

interface MemoryMapProps {
  bars: readonly MapBar[];
  /** What the rows of a bar are called when a plan is drawn above reality. */
  names?: { ghost: string; real: string };
  /** Where given, the pools of the plan can be made larger and smaller. */
  onResize?: ResizePool;
  /** Which pools can: one that no database uses has nothing to resize. */
  canResize?: (pageBytes: number) => boolean;
  /** How the parts are told apart beneath the bars: as a table, in a line with the table behind it, or in a line alone. */
  legend?: "table" | "line" | "key";
  /** How many bars stand side by side; they share the width. */
  columns?: 1 | 2 | 4;
}

/** The product's picture: all of MemTotal as one bar to scale, one bar per NUMA node, with its figures below. */
export function MemoryMap({
  bars,
  names,
  onResize,
  canResize,
  legend = "table",
  columns = 1,
}: MemoryMapProps) {
  const [active, setActive] = useState<string | null>(null);
  const table = (
    <Suspense fallback={<Skeleton height={200} />}>
      <MapTable bars={bars} active={active} onActive={setActive} planned={bars.some((bar) => bar.ghost)} />
    </Suspense>
  );
  return (
    <div className={classes.map}>
      <div className={classes.bars} data-columns={columns}>
        {bars.map((bar) => (
          <div key={bar.key}>
            <div className={classes.barHead}>
              <span className={classes.barName}>{bar.label}</span>
              <Bytes value={bar.totalBytes} />
            </div>
            {bar.ghost && (
              <>
                {names && <div className={classes.rowName}>{names.ghost}</div>}
                <Bar
                  bar={bar}
                  parts={bar.ghost}
                  ghost
                  active={active}
                  onActive={setActive}
                  onResize={onResize}
                  canResize={canResize}
                />
                {names && <div className={classes.rowName}>{names.real}</div>}
              </>
            )}
            <Bar
              bar={bar}
              parts={bar.parts}
              active={active}
              onActive={setActive}
              onResize={bar.ghost ? undefined : onResize}
              canResize={canResize}
            />
            <Scale totalBytes={bar.totalBytes} drawn={drawnBytes(bar)} />
          </div>
        ))}
      </div>
      {legend !== "table" && <Legend bars={bars} active={active} onActive={setActive} />}
      {legend === "table" && table}
      {legend === "line" && <Disclosure label="All parts with their sources">{table}</Disclosure>}
    </div>
  );
}

interface BarProps extends ActiveProps {
  bar: MapBar;
  parts: readonly MapPart[];
  ghost?: boolean;
  onResize?: ResizePool;
  canResize?: (pageBytes: number) => boolean;
}

function Bar({ bar, parts, ghost, active, onActive, onResize, canResize }: BarProps) {
  const box = useRef<HTMLDivElement>(null);
  // What is missing is no part of its own: it is how far the others reach beyond the end.
  const visible = parts.filter((part) => part.bytes > 0 && part.look !== "missing");
  const missing = parts.find(({ look }) => look === "missing");
  const drawn = drawnBytes(bar);
  const summary = [...visible, ...(missing ? [missing] : [])]
    .map((part) => `${part.label} ${formatBytes(part.bytes)}`)
    .join(", ");
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is a group of inputs, this is a group of parts
    <div
      ref={box}
      className={classes.bar}
      data-ghost={ghost}
      role="group"
      tabIndex={-1}
      aria-label={`${ghost ? "Planned memory" : "Memory"} of ${bar.label}, ${formatBytes(bar.totalBytes)}: ${summary}`}
    >
      {visible.map((part) => (
        <Part key={part.key} part={part} bar={bar} drawn={drawn} active={active} onActive={onActive} />
      ))}
      {missing && (
        <div className={classes.beyond} style={{ width: `${(100 * missing.bytes) / drawn}%` }}>
          <span className={classes.label}>{formatBytes(missing.bytes)} short</span>
        </div>
      )}
      {onResize && (
        <PoolHandles
          bar={bar}
          parts={visible}
          drawn={drawn}
          box={box}
          onResize={onResize}
          canResize={canResize}
        />
      )}
    </div>
  );
}

interface PartProps extends ActiveProps {
  part: MapPart;
  bar: MapBar;
  drawn: number;
}

function Part({ part, bar, drawn, active, onActive }: PartProps) {
  const hint = useHint<HTMLDivElement>(<PartHint part={part} totalBytes={bar.totalBytes} />);
  return (
    <>
      <div
        ref={hint.ref}
        className={`${classes.part} ${part.look === "unknown" ? "hp-hatched" : ""}`}
        data-look={part.look}
        data-dim={active !== null && active !== part.key}
        style={partStyle(part, drawn)}
        role="img"
        aria-label={`${part.label} ${formatBytes(part.bytes)}`}
        aria-describedby={hint.describedBy}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: its hint must be reachable by keyboard
        tabIndex={0}
        {...hint.handlers}
        onMouseEnter={() => onActive(part.key)}
        onMouseLeave={() => onActive(null)}
      >
        {part.look === "pool" && <div className={classes.grid} data-coarse={(part.pageBytes ?? 0) >= GIB} />}
        <Fills part={part} />
        {part.bytes / drawn >= LABEL_SHARE && (
          <span className={classes.label}>
            <span>{part.label}&nbsp;</span>
            <span>{formatBytes(part.bytes)}</span>
          </span>
        )}
      </div>
      {hint.box}
    </>
  );
}

/** Changes the size of a pool by `deltaBytes`; the planner decides what the pool then holds. */
export type ResizePool = (pageBytes: number, deltaBytes: number) => void;

interface PoolHandlesProps {
  bar: MapBar;
  parts: readonly MapPart[];
  drawn: number;
  box: RefObject<HTMLDivElement | null>;
  onResize: ResizePool;
  canResize?: (pageBytes: number) => boolean;
}

/** Half the width of a handle, and how far apart two of them stay (WCAG 2.5.8: 24 px each). */
const HANDLE_HALF_PX = 12;
const HANDLE_APART_PX = 26;

const KEY_STEPS: Record<string, number> = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -8,
  PageUp: 8,
};

/** By how many bytes a key changes a pool: Home empties it, End gives it what is left; undefined for other keys. */
export function keyDelta(key: string, poolBytes: number, freeBytes: number, totalBytes: number) {
  if (key === "Home") return -poolBytes;
  if (key === "End") return Math.max(0, freeBytes);
  const steps = KEY_STEPS[key];
  return steps === undefined ? undefined : (steps * totalBytes) / 64;
}

/** A handle at the upper end of each pool: dragged, or moved with the arrow keys in steps of 1/64 of the node. */
function PoolHandles({ bar, parts, drawn, box, onResize, canResize = () => true }: PoolHandlesProps) {
  const from = useRef<number | null>(null);
  // A pool that is emptied takes its handle with it: the bar keeps the focus, or Tab would begin at the page's start.
  const keepsFocus = useCallback(
    (handle: HTMLDivElement) => () => {
      if (document.activeElement === handle) box.current?.focus();
    },
    [box],
  );
  const freeBytes = parts.find(({ look }) => look === "free")?.bytes ?? 0;
  let end = 0;
  // Handles of pools that end close to each other are set apart, or one would hide the other.
  let left = `${HANDLE_HALF_PX - HANDLE_APART_PX}px`;
  return parts.map((part) => {
    end += part.bytes;
    if (part.look !== "pool" || !part.pageBytes || !canResize(part.pageBytes)) return null;
    const pageBytes = part.pageBytes;
    left = `max(${(100 * end) / drawn}%, calc(${left} + ${HANDLE_APART_PX}px))`;
    const bytesAt = (clientX: number) => {
      const width = box.current?.getBoundingClientRect().width ?? 1;
      return (clientX / width) * drawn;
    };
    return (
      <div
        key={part.key}
        ref={keepsFocus}
        className={classes.handle}
        style={{ left: `min(${left}, calc(100% - ${HANDLE_HALF_PX}px))` }}
        role="slider"
        tabIndex={0}
        aria-label={`Size of the ${part.label.charAt(0).toLowerCase() + part.label.slice(1)} on ${bar.label}`}
        aria-valuemin={0}
        aria-valuemax={bar.totalBytes}
        aria-valuenow={part.bytes}
        aria-valuetext={formatBytes(part.bytes)}
        onKeyDown={(event) => {
          const delta = keyDelta(event.key, part.bytes, freeBytes, bar.totalBytes);
          if (delta === undefined) return;
          event.preventDefault();
          if (delta !== 0) onResize(pageBytes, delta);
        }}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          from.current = event.clientX;
        }}
        onPointerMove={(event) => {
          if (from.current === null) return;
          const delta = bytesAt(event.clientX) - bytesAt(from.current);
          if (Math.abs(delta) < MIB) return;
          from.current = event.clientX;
          onResize(pageBytes, delta);
        }}
        onPointerUp={() => {
          from.current = null;
        }}
        onPointerCancel={() => {
          from.current = null;
        }}
      />
    );
  });
}

function partStyle(part: MapPart, drawn: number): CSSProperties {
  const style: CSSProperties = { flex: `${part.bytes} 0 0`, maxWidth: `${(100 * part.bytes) / drawn}%` };
  if (part.look === "solid" || part.look === "pool") style.backgroundColor = part.color;
  if (part.look === "slack") {
    style.backgroundImage = `repeating-linear-gradient(45deg, ${part.color} 0 3px, transparent 3px 6px)`;
  }
  return style;
}

function Fills({ part }: { part: MapPart }) {
  let start = 0;
  return part.fills?.map((fill) => {
    const left = (100 * start) / part.bytes;
    start += fill.bytes;
    return (
      <div
        key={fill.label}
        className={classes.fill}
        data-look={fill.look}
        style={{ left: `${left}%`, width: `${(100 * fill.bytes) / part.bytes}%` }}
      />
    );
  });
}

function PartHint({ part, totalBytes }: { part: MapPart; totalBytes: number }) {
  return (
    <div>
      <strong>{part.label}</strong>
      <div>
        {formatBytes(part.bytes)} ({formatBytesExact(part.bytes)}), {formatShare(part.bytes / totalBytes)} of
        the bar
      </div>
      {part.pageBytes && <div>{formatPages(Math.round(part.bytes / part.pageBytes), part.pageBytes)}</div>}
      {part.fills?.map((fill) => (
        <div key={fill.label}>
          {fill.label}: {formatBytes(fill.bytes)}
        </div>
      ))}
      <div>Source: {part.source}</div>
      {part.detail && <div>{part.detail}</div>}
    </div>
  );
}

function Scale({ totalBytes, drawn }: { totalBytes: number; drawn: number }) {
  const step = scaleStep(drawn);
  const ticks: number[] = [];
  for (let at = 0; at <= totalBytes * 0.95; at += step) ticks.push(at);
  return (
    <div className={classes.scale} aria-hidden="true">
      {ticks.map((at) => (
        <span key={at} className={classes.tick} style={{ left: `${(100 * at) / drawn}%` }}>
          {at === 0 ? "0" : formatBytes(at)}
        </span>
      ))}
    </div>
  );
}

/** A power of two of bytes that gives four to eight ticks. */
export function scaleStep(totalBytes: number): number {
  return 2 ** Math.max(Math.ceil(Math.log2(totalBytes / 8)), Math.log2(MIB));
}

/** "3 GiB → 1 GiB"; a change that is in no digit is none. */
function changeText(now: number | null, planned: number | null): string {
  const [before, after] = [now, planned ?? now].map(formatBytes);
  return now === null || before === after ? `${after}` : `${before} → ${after}`;
}

/** The parts in one line: hue, name, and the size now and as planned. */
function Legend({ bars, active, onActive }: ActiveProps & { bars: readonly MapBar[] }) {
  const planned = bars.some((bar) => bar.ghost);
  return (
    <ul className={classes.legend}>
      {mapRows(bars).map(({ part, bytes, ghostBytes }) => (
        <li
          key={part.key}
          data-active={active === part.key}
          onMouseEnter={() => onActive(part.key)}
          onMouseLeave={() => onActive(null)}
        >
          <PartSwatch part={part} />
          {part.label} <strong>{planned ? changeText(bytes, ghostBytes) : formatBytes(bytes)}</strong>
        </li>
      ))}
    </ul>
  );
}
