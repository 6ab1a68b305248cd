import { Button, Modal, Stack, Textarea } from "@mantine/core";
import { useReadPods } from "@/api/plans";
import { ErrorState, StateText } from "@/components/ui/states";
import { type DatabaseForm, fromScenario, type TenantForm } from "../draft/planner-form";

type Found = NonNullable<ReturnType<typeof useReadPods>["data"]>;

interface PastePodsProps {
  opened: boolean;
  onClose: () => void;
  /** The node whose pods are taken; undefined: all of them, as no node of the fleet is chosen. */
  nodeName: string | undefined;
  onPods: (tenants: TenantForm[], databases: DatabaseForm[]) => void;
}

/** What kubectl prints, read by the service: the rules are those of an import of the cluster. */
export function PastePods({ opened, onClose, nodeName, onPods }: PastePodsProps) {
  const read = useReadPods();
  const take = (text: string) => {
    if (text.trim() !== "" && !read.isPending) read.mutate({ text, nodeName });
  };
  const add = (found: Found) => {
    const { form } = fromScenario({ tenants: found.tenants, databases: found.databases });
    // A node of the fleet brings its databases as they run; those of the pods would be them once more.
    onPods(form.tenants, nodeName === undefined ? form.databases : []);
    read.reset();
  };
  return (
    <Modal opened={opened} onClose={onClose} title="Workloads from kubectl">
      <Stack gap="sm">
        <StateText>
          Paste the output of <span className="hp-mono">kubectl get pods -A -o json</span>.{" "}
          {nodeName ? `The pods of ${nodeName} are taken.` : "All pods are taken: no node is chosen."} The
          service reads it and keeps nothing.
        </StateText>
        <Textarea
          label="Pods as JSON"
          rows={3}
          spellCheck={false}
          value=""
          onChange={(event) => take(event.currentTarget.value)}
          // Megabytes of it would be laid out for nothing.
          onPaste={(event) => {
            event.preventDefault();
            take(event.clipboardData.getData("text"));
          }}
        />
        <div role="status">
          {read.isPending && <StateText>Reading.</StateText>}
          {read.data && (
            <StateText>
              <span data-testid="pods-found">{foundText(read.data, nodeName)}</span>
            </StateText>
          )}
        </div>
        {read.isError && <ErrorState error={read.error} bare />}
        {read.data && (
          <Button disabled={read.data.pods === 0} onClick={() => add(read.data)}>
            Add {read.data.tenants.length} {read.data.tenants.length === 1 ? "workload" : "workloads"}
          </Button>
        )}
      </Stack>
    </Modal>
  );
}

/** What is taken and what is not, each with its count. */
function foundText(found: Found, nodeName: string | undefined): string {
  const names = Object.keys(found.elsewhere);
  const elsewhere = Object.values(found.elsewhere).reduce((sum, count) => sum + count, 0);
  const databases =
    found.databases.length === 0
      ? ""
      : ` ${found.databases.length} of them run a database${nodeName ? ", which the node brings itself" : ""}.`;
  const left = [
    elsewhere > 0 &&
      `${elsewhere} on other nodes (${names.slice(0, 3).join(", ")}${names.length > 3 ? ", ..." : ""})`,
    found.waiting > 0 && `${found.waiting} on no node yet`,
    found.ended > 0 && `${found.ended} ended`,
  ].filter(Boolean);
  return `${found.pods} ${found.pods === 1 ? "pod" : "pods"} taken.${databases}${left.length > 0 ? ` Left out: ${left.join(", ")}.` : ""}`;
}
