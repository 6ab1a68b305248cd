import { Table, Tooltip } from "@mantine/core";
import { type CSSProperties, type RefObject, useRef, useState } from "react";
import { SourceBadge, Swatch } from "@/components/ui/badges";
import { TableScroll } from "@/components/ui/table-scroll";
import { Bytes } from "@/components/ui/values";
import { formatBytes, formatBytesExact, formatPages, formatShare, GIB, MIB } from "@/lib/units";
import classes from "./memory-map.module.css";
import { compareParts, drawnBytes, type MapBar, type MapPart } from "./memory-map-types";

/** A part narrower than this share of the bar has its name in the table and the tooltip only. */
const LABEL_SHARE = 0.085;

interface MemoryMapProps {
  bars: readonly MapBar[];
  /** What the rows of a bar are called when a plan is drawn above reality. */
  names?: { ghost: string; real: string };
  /** Where given, the pools of the plan can be made larger and smaller. */
  onResize?: ResizePool;
  /** Without the table of the parts. */
  bare?: boolean;
}

/** The product's picture: all of MemTotal as one bar to scale, a bar a NUMA node, with its figures below. */
export function MemoryMap({ bars, names, onResize, bare = false }: MemoryMapProps) {
  const [active, setActive] = useState<string | null>(null);
  return (
    <div className={classes.map}>
      <div className={classes.bars}>
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
                />
                {names && <div className={classes.rowName}>{names.real}</div>}
              </>
            )}
            <Bar bar={bar} parts={bar.parts} active={active} onActive={setActive} />
            <Scale totalBytes={bar.totalBytes} drawn={drawnBytes(bar)} />
          </div>
        ))}
      </div>
      {!bare && (
        <MapTable bars={bars} active={active} onActive={setActive} planned={bars.some((bar) => bar.ghost)} />
      )}
    </div>
  );
}

interface ActiveProps {
  active: string | null;
  onActive: (key: string | null) => void;
}

interface BarProps extends ActiveProps {
  bar: MapBar;
  parts: readonly MapPart[];
  ghost?: boolean;
  onResize?: ResizePool;
}

function Bar({ bar, parts, ghost, active, onActive, onResize }: BarProps) {
  const box = useRef<HTMLDivElement>(null);
  const visible = parts.filter((part) => part.bytes > 0);
  const drawn = drawnBytes(bar);
  const summary = visible.map((part) => `${part.label} ${formatBytes(part.bytes)}`).join(", ");
  const missing = visible.some(({ look }) => look === "missing");
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is a group of inputs, this is a group of parts
    <div
      ref={box}
      className={classes.bar}
      data-ghost={ghost}
      role="group"
      aria-label={`${ghost ? "Planned memory" : "Memory"} of ${bar.label}, ${formatBytes(bar.totalBytes)}: ${summary}`}
    >
      {visible.map((part) => (
        <Tooltip key={part.key} label={<PartTooltip part={part} totalBytes={bar.totalBytes} />}>
          <div
            className={`${classes.part} ${part.look === "unknown" ? "hp-hatched" : ""}`}
            data-look={part.look}
            data-dim={active !== null && active !== part.key}
            style={partStyle(part, drawn)}
            role="img"
            aria-label={`${part.label} ${formatBytes(part.bytes)}`}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: its hint must be reachable by keyboard
            tabIndex={0}
            onMouseEnter={() => onActive(part.key)}
            onMouseLeave={() => onActive(null)}
            onFocus={() => onActive(part.key)}
            onBlur={() => onActive(null)}
          >
            {part.look === "pool" && (
              <div className={classes.grid} data-coarse={(part.pageBytes ?? 0) >= GIB} />
            )}
            <Fills part={part} />
            {part.bytes / drawn >= LABEL_SHARE && (
              <span className={classes.label}>
                {part.label} {formatBytes(part.bytes)}
              </span>
            )}
          </div>
        </Tooltip>
      ))}
      {missing && (
        <div
          className={classes.end}
          style={{ left: `${(100 * bar.totalBytes) / drawn}%` }}
          aria-hidden="true"
        />
      )}
      {ghost && onResize && (
        <PoolHandles bar={bar} parts={visible} drawn={drawn} box={box} onResize={onResize} />
      )}
    </div>
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
}

const KEY_STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageDown: -8, PageUp: 8 };

/** A handle at the upper end of each pool: dragged, or moved with the arrow keys in steps of 1/64 of the node. */
function PoolHandles({ bar, parts, drawn, box, onResize }: PoolHandlesProps) {
  const from = useRef<number | null>(null);
  let end = 0;
  return parts.map((part) => {
    end += part.bytes;
    if (part.look !== "pool" || !part.pageBytes) return null;
    const pageBytes = part.pageBytes;
    const bytesAt = (clientX: number) => {
      const width = box.current?.getBoundingClientRect().width ?? 1;
      return (clientX / width) * drawn;
    };
    return (
      <div
        key={part.key}
        className={classes.handle}
        style={{ left: `${(100 * end) / drawn}%` }}
        role="slider"
        tabIndex={0}
        aria-label={`Size of the ${part.label.toLowerCase()}`}
        aria-valuemin={0}
        aria-valuemax={bar.totalBytes}
        aria-valuenow={part.bytes}
        aria-valuetext={formatBytes(part.bytes)}
        onKeyDown={(event) => {
          const steps = KEY_STEPS[event.key];
          if (steps === undefined) return;
          event.preventDefault();
          onResize(pageBytes, (steps * bar.totalBytes) / 64);
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

function PartTooltip({ part, totalBytes }: { part: MapPart; totalBytes: number }) {
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

function MapTable({
  bars,
  planned,
  active,
  onActive,
}: ActiveProps & { bars: readonly MapBar[]; planned: boolean }) {
  const rows = mapRows(bars);
  const totalBytes = bars.reduce((sum, bar) => sum + bar.totalBytes, 0);
  return (
    <TableScroll label="Parts of memory" minWidth={420}>
      <Table className={classes.table} verticalSpacing={5} withRowBorders>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Part</Table.Th>
            {planned && <Table.Th className="hp-num">Now</Table.Th>}
            <Table.Th className="hp-num">{planned ? "Planned" : "Size"}</Table.Th>
            <Table.Th className="hp-num">Share</Table.Th>
            <Table.Th>Source</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ part, bytes, ghostBytes }) => (
            <Table.Tr
              key={part.key}
              data-active={active === part.key}
              onMouseEnter={() => onActive(part.key)}
              onMouseLeave={() => onActive(null)}
            >
              <Table.Th scope="row" fw={400}>
                <span className={classes.partName}>
                  <PartSwatch part={part} />
                  {part.label}
                </span>
              </Table.Th>
              {planned && <Table.Td className="hp-num">{bytes !== null && <Bytes value={bytes} />}</Table.Td>}
              <SizeCells bytes={planned ? ghostBytes : bytes} totalBytes={totalBytes} />
              <Table.Td>
                <SourceBadge source={part.source} detail={part.detail} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

function SizeCells({ bytes, totalBytes }: { bytes: number | null; totalBytes: number }) {
  return (
    <>
      <Table.Td className="hp-num">{bytes !== null && <Bytes value={bytes} />}</Table.Td>
      <Table.Td className="hp-num">{bytes !== null && formatShare(bytes / totalBytes)}</Table.Td>
    </>
  );
}

interface MapRow {
  part: MapPart;
  /** Null where no bar has this part: it is not zero, it is not told apart there. */
  bytes: number | null;
  ghostBytes: number | null;
}

/** The parts of all bars summed by key, in drawing order, for the table. */
export function mapRows(bars: readonly MapBar[]): MapRow[] {
  const rows = new Map<string, MapRow>();
  const add = (part: MapPart, field: "bytes" | "ghostBytes") => {
    const row = rows.get(part.key) ?? { part, bytes: null, ghostBytes: null };
    row[field] = (row[field] ?? 0) + part.bytes;
    rows.set(part.key, row);
  };
  for (const bar of bars) {
    for (const part of bar.ghost ?? []) add(part, "ghostBytes");
    for (const part of bar.parts) add(part, "bytes");
  }
  return [...rows.values()]
    .filter((row) => row.bytes || row.ghostBytes)
    .sort((a, b) => compareParts(a.part, b.part));
}

function PartSwatch({ part }: { part: MapPart }) {
  if (part.look === "unknown")
    return <span className={`hp-hatched ${classes.unknownSwatch}`} aria-hidden="true" />;
  if (part.look === "free") return <Swatch color="transparent" outlined />;
  if (part.look === "slack" || part.look === "missing") return <Swatch color={part.color} striped />;
  return <Swatch color={part.color} />;
}
