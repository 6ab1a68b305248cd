import type { ModelErrorClass, ModelErrors } from "@/api/types";
import { StateBadge } from "@/components/ui/badges";
import { FoldCard } from "@/components/ui/fold-card";
import { StateText } from "@/components/ui/states";
import { Table } from "@/components/ui/table";
import { TableScroll } from "@/components/ui/table-scroll";

const points = (value: number) => `${value > 0 ? "+" : ""}${value.toFixed(1)}`;

/** "9 of 10 on AMD Zen 3 guest": the cells of a machine inside the range that the others give. */
export function leftOutText(row: ModelErrorClass["leave_one_machine_out"][number]): string {
  return row.inside === null ? `${row.machine}: ${row.why}` : `${row.machine}: ${row.inside} of ${row.cells}`;
}

/** How far likely gains were off where they were measured: the model's error without the noise, by class. */
export function ModelErrorCard({ errors }: { errors: ModelErrors }) {
  const sds = errors.classes.map((row) => row.model_sd_points);
  return (
    <FoldCard
      title={`How far is the likely gain off? By ${Math.min(...sds).toFixed(1)} to ${Math.max(...sds).toFixed(1)} points (one standard deviation), by class.`}
    >
      <StateText>
        Points of throughput around the likely gain, for nine of ten cells. A cell counts where {errors.bound}
        . One measurement has noise of its own: {errors.one_measurement_noise_sd_points} points.
      </StateText>
      <TableScroll label="The model's error by class" minWidth={760}>
        <Table verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Class</Table.Th>
              <Table.Th className="hp-num">Cells</Table.Th>
              <Table.Th className="hp-num">Error without noise</Table.Th>
              <Table.Th className="hp-num">What is gained</Table.Th>
              <Table.Th className="hp-num">One measurement</Table.Th>
              <Table.Th>Inside, machine left out</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {errors.classes.map((row) => (
              <Table.Tr key={row.name}>
                <Table.Td>{row.about}</Table.Td>
                <Table.Td className="hp-num">{row.cells}</Table.Td>
                <Table.Td className="hp-num">{row.model_sd_points}</Table.Td>
                <Table.Td className="hp-num">
                  {points(row.gained_points.low)} to {points(row.gained_points.high)}
                </Table.Td>
                <Table.Td className="hp-num">
                  {points(row.one_measurement_points.low)} to {points(row.one_measurement_points.high)}
                </Table.Td>
                <Table.Td>
                  <StateBadge
                    state={row.coverage === "shown" ? "ok" : "unknown"}
                    text={row.coverage === "shown" ? "Nine in ten shown" : "Nine in ten not shown"}
                  />
                  <div className="hp-dim hp-small">
                    {row.leave_one_machine_out.map(leftOutText).join("; ")}
                  </div>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </TableScroll>
    </FoldCard>
  );
}
