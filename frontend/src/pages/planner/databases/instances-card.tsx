import type { InstancePlan } from "@/api/types";
import { PageSizeBadge } from "@/components/ui/badges";
import { Disclosure } from "@/components/ui/disclosure";
import { FoldCard } from "@/components/ui/fold-card";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";
import { Bytes } from "@/components/ui/values";
import { pageSizeShort } from "@/lib/page-size";
import { formatBytes, formatCount } from "@/lib/units";
import { ChoiceComparison } from "./choice-comparison";
import classes from "./instances-card.module.css";

/** What a database needs, why at this page size, and what to write into its configuration. */
export function InstanceCard({ instance }: { instance: InstancePlan }) {
  const { demand } = instance;
  return (
    <FoldCard
      title={`What does ${instance.name} need? ${formatBytes(demand.segment_bytes)} of shared memory.`}
    >
      <div className={classes.head}>
        {instance.page_bytes ? (
          <PageSizeBadge pageBytes={instance.page_bytes} kind="hugetlb" />
        ) : (
          <span className={classes.dim}>base pages</span>
        )}
        <span className={classes.dim}>
          {demand.engine} {demand.version}
        </span>
      </div>
      <p className={classes.why}>{instance.why_besides_score || instance.why}</p>
      <ChoiceComparison instance={instance} />
      {demand.wants_pool && demand.segments.length > 0 && <SegmentTable instance={instance} />}
      <dl className={classes.figures}>
        <Figure name="Lost to rounding" value={<Bytes value={demand.waste_bytes} />} />
        <Figure
          name="Page tables"
          value={
            <>
              <Bytes value={instance.page_tables_huge_bytes} /> instead of{" "}
              <Bytes value={instance.page_tables_base_bytes} />
            </>
          }
        />
        {demand.error_pages > 0 && (
          <Figure name="Rule's error" value={`± ${formatCount(demand.error_pages)} pages`} />
        )}
      </dl>
      <Advice instance={instance} />
    </FoldCard>
  );
}

function Figure({ name, value }: { name: string; value: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function SegmentTable({ instance }: { instance: InstancePlan }) {
  const { demand } = instance;
  return (
    <TableScroll label={`Segments of ${instance.name}`} minWidth={480}>
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Segment</Table.Th>
            <Table.Th className="hp-num">Size each</Table.Th>
            <Table.Th className="hp-num">Count</Table.Th>
            <Table.Th className="hp-num">Pages of {pageSizeShort(demand.page_bytes)}</Table.Th>
            <Table.Th>Rule</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {demand.segments.map((segment) => (
            <Table.Tr key={segment.name}>
              <Table.Th scope="row" fw={400}>
                {segment.name}
              </Table.Th>
              <Table.Td className="hp-num">
                <Bytes value={segment.segment_bytes} />
              </Table.Td>
              <Table.Td className="hp-num">{formatCount(segment.count)}</Table.Td>
              <Table.Td className="hp-num">{formatCount(segment.pages)}</Table.Td>
              <Table.Td>
                <Disclosure label={segment.explanation.formula}>
                  <ul className={classes.terms}>
                    {segment.explanation.inputs.map((term) => (
                      <li key={term.name}>
                        {term.name} = {term.value} ({term.source})
                      </li>
                    ))}
                    <li>{segment.explanation.reference}</li>
                  </ul>
                </Disclosure>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </TableScroll>
  );
}

function Advice({ instance }: { instance: InstancePlan }) {
  const { settings, fits, notes } = instance.demand;
  if (settings.length + fits.length + notes.length === 0) return null;
  return (
    <ul className={classes.advice}>
      {settings.map((setting) => (
        <li key={setting.name}>
          <code className="hp-mono">
            {setting.name} = {setting.value}
          </code>
          <span className={classes.dim}> {setting.reason}</span>
        </li>
      ))}
      {fits.map((fit) => (
        <li key={`${fit.setting}:${fit.value}`}>
          Or{" "}
          <code className="hp-mono">
            {fit.setting} = {fit.value}
          </code>
          <span className={classes.dim}>
            {" "}
            {fit.reason} Rounding would lose {formatBytes(fit.waste_after_bytes)} instead of{" "}
            {formatBytes(fit.waste_before_bytes)}.
          </span>
        </li>
      ))}
      {notes.map((note) => (
        <li key={note} className={classes.dim}>
          {note}
        </li>
      ))}
    </ul>
  );
}
