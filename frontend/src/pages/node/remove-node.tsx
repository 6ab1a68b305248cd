import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useRemoveNode } from "@/api/nodes";
import { useIsAdmin } from "@/api/session";
import type { NodeDetail } from "@/api/types";
import { AskFirst } from "@/components/ui/ask-first";
import { When } from "@/components/ui/values";

/** Removes a node from the service, for an administrator, who is told what goes, what stays and what brings it back. */
export function RemoveNode({ node }: { node: Pick<NodeDetail, "id" | "name" | "last_report_at"> }) {
  const isAdmin = useIsAdmin();
  const [isAsked, ask] = useState(false);
  const remove = useRemoveNode();
  const navigate = useNavigate();
  if (!isAdmin) return null;
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          remove.reset();
          ask(true);
        }}
      >
        Remove
      </Button>
      {isAsked && (
        <AskFirst
          title="Remove this node?"
          keep="Keep it"
          act="Remove the node"
          isPending={remove.isPending}
          error={remove.error}
          onClose={() => ask(false)}
          onAct={() => remove.mutate(node.id, { onSuccess: () => void navigate({ to: "/nodes" }) })}
        >
          <strong className="hp-anywhere">{node.name}</strong> goes from this service with its reports,
          history, measurements and trials. This cannot be undone. Plans that were kept for it stay, and
          nothing changes on the machine. Its last report came <When iso={node.last_report_at} />: stop its
          agent first, or its next report adds it again, without what was stored before.
        </AskFirst>
      )}
    </>
  );
}
