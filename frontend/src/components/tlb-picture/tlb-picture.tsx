import type { CSSProperties } from "react";
import { SourceBadge, Swatch } from "@/components/ui/badges";
import { Hint } from "@/components/ui/hint";
import { CrackIcon } from "@/components/ui/icons";
import { TableScroll } from "@/components/ui/table-scroll";
import { Unknown } from "@/components/ui/values";
import { backingKindOf, pageSizeColor, pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatBytesExact, formatNs } from "@/lib/units";
import { entriesText, fractureSentence, type TlbBox, type TlbPictureModel, waysLabel } from "./tlb-model";
import classes from "./tlb-picture.module.css";

const NOT_LISTED =
  "These entries were not measured, and neither CPUID nor the catalogue lists this level of the processor.";

interface TlbPictureProps {
  model: TlbPictureModel;
  basePageBytes: number;
}

/** TLB levels as stacked boxes, one column a page size, each box as wide as the logarithm of its entries. */
export function TlbPicture({ model, basePageBytes }: TlbPictureProps) {
  const { pageSizes, rows, fractured } = model;
  const columns: CSSProperties = {
    gridTemplateColumns: `max-content repeat(${pageSizes.length}, minmax(13.5rem, 1fr))`,
  };
  const isCracked = (pageBytes: number) => fractured.some((granule) => granule.page_bytes === pageBytes);
  return (
    <>
      {fractured.map((granule) => (
        <div key={`${granule.backing}:${granule.page_bytes}`} className={classes.crack}>
          <span className="hp-attention">
            <CrackIcon />
          </span>
          {fractureSentence(granule)}
        </div>
      ))}
      <TableScroll label="TLB levels by page size" minWidth={0}>
        <div className={classes.picture} style={columns}>
          <div className={classes.head}>Level</div>
          {pageSizes.map((pageBytes) => (
            <div key={pageBytes} className={classes.head}>
              <span className={classes.column}>
                <Swatch color={pageSizeColor(pageBytes, backingKindOf(pageBytes, basePageBytes))} />
                {pageSizeShort(pageBytes)} pages
              </span>
            </div>
          ))}
          {rows.map((row) => [
            <div key={row.label} className={classes.rowName}>
              {row.label}
            </div>,
            ...row.cells.map((box, index) => {
              const pageBytes = pageSizes[index] ?? 0;
              const color = pageSizeColor(pageBytes, backingKindOf(pageBytes, basePageBytes));
              return (
                <Cell
                  key={`${row.label}:${pageBytes}`}
                  box={box}
                  isListedWhole={row.isListedWhole}
                  color={color}
                  cracked={isCracked(pageBytes)}
                />
              );
            }),
          ])}
        </div>
      </TableScroll>
    </>
  );
}

function Cell(props: { box: TlbBox | null; isListedWhole: boolean; color: string; cracked: boolean }) {
  const { box, isListedWhole, color, cracked } = props;
  if (!box)
    return (
      <div className={`${classes.cell} ${classes.none}`}>
        {isListedWhole ? "No entries of this size" : <Unknown why={NOT_LISTED} />}
      </div>
    );
  const ways = waysLabel(box.level.ways);
  return (
    <div className={classes.cell}>
      <div
        className={`${classes.box} ${box.width === null ? "hp-hatched" : ""}`}
        data-source={box.source}
        style={{ width: `${(box.width ?? 1) * 100}%`, "--hue": color } as CSSProperties}
      >
        {cracked && <CrackLine />}
      </div>
      <div className={classes.text}>
        <div className={classes.entries}>
          {box.level.entries === null ? (
            <Unknown why={box.level.note} />
          ) : (
            `${entriesText(box.level)} entries`
          )}
          <SourceBadge source={box.source} detail={box.level.note} />
        </div>
        {box.reachBytes === null && box.level.entries !== null && (
          <div className={classes.line}>
            Reach{" "}
            <Unknown why="The hypervisor backs memory with smaller pages; what one of these entries covers was not measured." />
          </div>
        )}
        {box.reachBytes !== null && (
          <div className={classes.line}>
            <Hint label={`${formatBytesExact(box.reachBytes)} with every entry in use`}>
              Reach {formatBytes(box.reachBytes)}
              {box.granuleBytes !== box.level.page_bytes && `, ${formatBytes(box.granuleBytes)} per entry`}
            </Hint>
          </div>
        )}
        {ways && <div className={classes.line}>{ways}</div>}
        {box.penalty?.ns != null && (
          <div className={classes.line}>
            Miss +{formatNs(box.penalty.ns)}
            {box.penalty.level === "walk" ? ", page walk" : ", next level"}
          </div>
        )}
      </div>
    </div>
  );
}

function CrackLine() {
  return (
    <svg className={classes.crackMark} viewBox="0 0 12 60" preserveAspectRatio="none" aria-hidden="true">
      <path d="M8 0 3 14l6 8-6 12 5 9-4 17" fill="none" stroke="currentColor" strokeWidth="1.6" />
    </svg>
  );
}
