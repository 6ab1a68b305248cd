import { MultiSelect } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { runsQuery } from "@/api/runs";
import type { Run } from "@/api/types";
import { ErrorState, StateText } from "@/components/ui/states";
import { formatAbsolute, formatCount } from "@/lib/units";

const SEARCH_DELAY_MS = 200;

function labelOf(run: Run): string {
  const parts = [run.node_name, formatAbsolute(run.started_at), run.profile ?? run.command];
  return [...parts, ...(run.synthetic ? ["synthetic"] : []), ...(run.bad ? ["marked bad"] : [])].join(", ");
}

/** The options of the picker: what the search found, and what is chosen whether it was found or not. */
function runOptions(
  found: readonly Run[],
  known: readonly Run[],
  chosen: readonly string[],
): { value: string; label: string }[] {
  const runs = new Map([...known, ...found].map((run) => [run.id, run]));
  const kept = chosen.map((id) => runs.get(id) ?? id);
  const others = found.filter(({ id }) => !chosen.includes(id));
  return [...kept, ...others].map((run) =>
    typeof run === "string"
      ? { value: run, label: `run ${run.slice(0, 8)}` }
      : { value: run.id, label: labelOf(run) },
  );
}

interface RunPickerProps {
  chosen: readonly string[];
  /** The chosen runs as far as they are loaded, for their names. */
  known: readonly Run[];
  most: number;
  onChange: (ids: string[]) => void;
}

/** Chooses runs out of all of the fleet: the server searches by the node's name, so no run is out of reach. */
export function RunPicker({ chosen, known, most, onChange }: RunPickerProps) {
  const [typed, setTyped] = useState("");
  const [search] = useDebouncedValue(typed, SEARCH_DELAY_MS);
  const query = useQuery(runsQuery(search.trim()));
  const found = query.data?.items ?? [];
  const options = runOptions(found, known, chosen);
  return (
    <>
      <MultiSelect
        label="Runs"
        description={`Two to ${most}. Type a part of a node's name; the newest runs come first.`}
        data={options}
        value={[...chosen]}
        maxValues={most}
        searchable
        searchValue={typed}
        onSearchChange={setTyped}
        // The server has searched: what it found is not filtered a second time.
        filter={({ options: all }) => all}
        nothingFoundMessage={query.isError ? "The runs could not be loaded" : "No run of such a node"}
        onChange={onChange}
        maw={860}
      />
      {query.isError && !query.data && (
        <ErrorState error={query.error} onRetry={() => void query.refetch()} />
      )}
      {query.data?.next_cursor && (
        <StateText>
          The newest {formatCount(found.length)} runs{search.trim() ? " of such nodes" : ""} are offered;
          there are more.
        </StateText>
      )}
    </>
  );
}
