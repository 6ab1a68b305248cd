import { Textarea } from "@mantine/core";
import { useReadSettings } from "@/api/engines";
import type { PastedSettings } from "@/api/types";
import { Disclosure } from "@/components/ui/disclosure";
import { ErrorState, StateText } from "@/components/ui/states";
import { formatCount } from "@/lib/units";

/** Says what was taken of a pasted list and what was not, each with its number or its name. */
export function pastedWords(found: PastedSettings): string[] {
  const taken = Object.keys(found.settings).length;
  const words = [
    `Read as ${found.source}${found.version ? `, version ${found.version}` : ""}: ${formatCount(taken)} ${taken === 1 ? "setting" : "settings"} taken.`,
    `${formatCount(found.at_default)} at their default and ${formatCount(found.without_effect)} without effect on memory are left out.`,
  ];
  if (found.unknown.length > 0) words.push(`Not known here: ${found.unknown.join(", ")}.`);
  for (const { name, value, why } of found.refused)
    words.push(`Not taken: ${name} = ${value}, ${why.replace(/\.$/, "")}.`);
  return words;
}

/** A server's own list of its settings, pasted; the service recognises and reads it. */
export function PasteSettings({ onRead }: { onRead: (found: PastedSettings) => void }) {
  const read = useReadSettings();
  return (
    <Disclosure label="Paste the server's settings">
      <Textarea
        label="SHOW ALL, pg_settings, SHOW VARIABLES or show parameter"
        description="As the client prints it. A configuration file is read, too."
        rows={3}
        value=""
        onChange={(event) => {
          const text = event.currentTarget.value;
          if (text.trim() !== "" && !read.isPending) read.mutate(text, { onSuccess: onRead });
        }}
      />
      <div role="status">
        {read.isPending && <StateText>Reading.</StateText>}
        {read.data && pastedWords(read.data).map((line) => <StateText key={line}>{line}</StateText>)}
      </div>
      {read.isError && <ErrorState error={read.error} bare />}
    </Disclosure>
  );
}
