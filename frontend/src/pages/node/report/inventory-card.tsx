import type { ReactNode } from "react";
import type { NodeDetail } from "@/api/types";
import { CopyButton } from "@/components/ui/copy-button";
import { QuestionCard } from "@/components/ui/question-card";
import { Bytes, Known, When } from "@/components/ui/values";
import { formatBytes } from "@/lib/units";
import classes from "./inventory-card.module.css";

/** What the machine is, as its newest report says. */
export function InventoryCard({ node }: { node: NodeDetail }) {
  const { inventory } = node;
  const { cpu, thp } = inventory;
  const yesNo = (value: boolean | null) => (value === null ? null : value ? "yes" : "no");
  const numbers = cpu && [cpu.family, cpu.model, cpu.stepping].every((part) => part !== null);
  const facts: [string, ReactNode][] = [
    ["Processor", <Known key="v" value={cpu?.brand ?? cpu?.vendor} />],
    [
      "Family, model, stepping",
      <Known key="v" value={numbers ? `${cpu.family}, ${cpu.model}, ${cpu.stepping}` : null} />,
    ],
    ["CPUs online", <Known key="v" value={cpu?.online ?? null} />],
    ["Architecture", inventory.architecture],
    ["Virtual machine", <Known key="v" value={yesNo(inventory.virtualised)} />],
    ["Hypervisor", inventory.virtualised === false ? "none" : <Known key="v" value={inventory.hypervisor} />],
    ["Kernel", <Known key="v" value={inventory.kernel_release} />],
    ["Base page", <Bytes key="v" value={inventory.base_page_bytes} />],
    [
      "Huge page sizes",
      <Known key="v" value={inventory.huge_page_sizes_bytes.map(formatBytes).join(", ") || null} />,
    ],
    ["Default huge page", <Bytes key="v" value={inventory.default_huge_page_bytes} />],
    ["THP enabled", <Known key="v" value={thp?.enabled} />],
    ["THP defrag", <Known key="v" value={thp?.defrag} />],
    ["THP for shared memory", <Known key="v" value={thp?.shmem_enabled} />],
    ["HVO", <Known key="v" value={yesNo(inventory.hvo_enabled)} />],
    ["First report", <When key="v" iso={node.first_report_at} />],
    ["Agent", node.agent_version],
  ];
  return (
    <QuestionCard title="What is this machine?">
      <dl className={classes.facts}>
        {facts.map(([name, value]) => (
          <div key={name} className={classes.fact}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {inventory.kernel_command_line && (
        <div className={classes.commandLine}>
          <span>Kernel command line</span>
          <CopyButton text={inventory.kernel_command_line} what="the kernel command line" />
          <code>{inventory.kernel_command_line}</code>
        </div>
      )}
    </QuestionCard>
  );
}
