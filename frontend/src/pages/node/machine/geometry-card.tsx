import { List } from "@mantine/core";
import type { Disagreement, GeometrySummary, TlbLevel } from "@/api/types";
import { isFractured, kindLabel, sourceOf, tlbPicture, waysLabel } from "@/components/tlb-picture/tlb-model";
import { TlbPicture } from "@/components/tlb-picture/tlb-picture";
import { SourceBadge } from "@/components/ui/badges";
import { Disclosure } from "@/components/ui/disclosure";
import { AttentionIcon } from "@/components/ui/icons";
import { QuestionCard } from "@/components/ui/question-card";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Term } from "@/components/ui/term";
import { Known, PageSize } from "@/components/ui/values";
import { pageSizeShort } from "@/lib/page-size";
import { formatCount } from "@/lib/units";
import classes from "./geometry-card.module.css";
import { tlbMeaning } from "./tlb-meaning";

interface GeometryCardProps {
  geometry: GeometrySummary;
  basePageBytes: number;
}

/** What the TLB holds: the picture, every value with its source, and where sources disagree. */
export function GeometryCard({ geometry, basePageBytes }: GeometryCardProps) {
  const model = tlbPicture({
    levels: geometry.levels,
    granules: geometry.effective_granule,
    penalties: geometry.penalty,
    disagreements: geometry.disagreements,
  });
  const meaning = tlbMeaning(model, geometry, basePageBytes);
  return (
    <QuestionCard
      title={geometryTitle(geometry)}
      description={
        <>
          <Term name="tlb">TLB</Term> levels with their <Term name="tlb-reach">reach</Term>, and what a{" "}
          <Term name="page-walk">page walk</Term> costs. Boxes are as wide as the logarithm of their entries.
          Filled: measured here. Outlined: read from CPUID or a catalogue. Dashed: assumed. Cracked: the{" "}
          <Term name="effective-page-size">effective page size</Term> is smaller.
        </>
      }
    >
      {model.rows.length > 0 ? (
        <>
          {meaning && <p className={classes.meaning}>{meaning}</p>}
          <TlbPicture model={model} basePageBytes={basePageBytes} />
        </>
      ) : (
        <StateText>The run gave no TLB levels. {geometry.reason}</StateText>
      )}
      {geometry.disagreements.length > 0 && <Disagreements items={geometry.disagreements} />}
      {geometry.levels.length > 0 && (
        <Disclosure label={`All ${geometry.levels.length} values with their sources`}>
          <LevelTable levels={geometry.levels} />
        </Disclosure>
      )}
    </QuestionCard>
  );
}

function geometryTitle(geometry: GeometrySummary): string {
  const fractured = geometry.effective_granule.filter(isFractured);
  if (fractured.length > 0) {
    const sizes = [...new Set(fractured.map((granule) => pageSizeShort(granule.page_bytes)))].join(" and ");
    return `The hypervisor backs ${sizes} pages with smaller ones, so they reach no further in the TLB than its own pages.`;
  }
  const whole = geometry.effective_granule.filter((granule) => granule.granule_bytes === granule.page_bytes);
  if (whole.length > 0) {
    const sizes = [...new Set(whole.map((granule) => pageSizeShort(granule.page_bytes)))].join(" and ");
    return `One TLB entry covers a whole page of ${sizes} here.`;
  }
  return "How much memory can the TLB cover?";
}

function Disagreements({ items }: { items: readonly Disagreement[] }) {
  return (
    <List listStyleType="none" spacing={6} size="sm">
      {items.map((item) => (
        <List.Item
          key={`${item.level}:${item.page_bytes}:${item.field}:${item.text}`}
          icon={
            <span className="hp-attention">
              <AttentionIcon />
            </span>
          }
        >
          <strong>Sources disagree.</strong> {item.text ?? disagreementText(item)}
        </List.Item>
      ))}
    </List>
  );
}

function disagreementText({ level, page_bytes: pageBytes, field, values }: Disagreement): string {
  const said = Object.entries(values)
    .map(
      ([source, value]) => `${source} says ${typeof value === "number" ? formatCount(value) : String(value)}`,
    )
    .join(", ");
  const where = [
    level === null ? null : `L${level}`,
    pageBytes === null ? null : `${pageSizeShort(pageBytes)} pages`,
  ];
  return `${where.filter(Boolean).join(", ")}, ${field}: ${said}.`;
}

function LevelTable({ levels }: { levels: readonly TlbLevel[] }) {
  return (
    <TableScroll label="TLB values with sources" minWidth={620}>
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Level</Table.Th>
            <Table.Th className="hp-num">Page size</Table.Th>
            <Table.Th className="hp-num">Entries</Table.Th>
            <Table.Th className="hp-num">Interval</Table.Th>
            <Table.Th>Ways</Table.Th>
            <Table.Th>
              <Term name="source">Source</Term>
            </Table.Th>
            <Table.Th>Confidence</Table.Th>
            <Table.Th>Note</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {levels.map((level) => (
            <Table.Tr
              key={`${level.level}:${level.kind}:${level.page_bytes}:${level.source}:${level.entries}`}
            >
              <Table.Td>
                L{level.level} {kindLabel(level.kind)}
              </Table.Td>
              <Table.Td className="hp-num">
                <PageSize bytes={level.page_bytes} />
              </Table.Td>
              <Table.Td className="hp-num">
                <Known value={level.entries === null ? null : formatCount(level.entries)} why={level.note} />
              </Table.Td>
              <Table.Td className="hp-num">
                {level.entries_min === null || level.entries_max === null
                  ? ""
                  : `${formatCount(level.entries_min)} to ${formatCount(level.entries_max)}`}
              </Table.Td>
              <Table.Td>{waysLabel(level.ways) ?? ""}</Table.Td>
              <Table.Td>
                <SourceBadge source={sourceOf(level.source)} />
              </Table.Td>
              <Table.Td>{level.confidence ?? ""}</Table.Td>
              <Table.Td>{level.note ?? ""}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}
