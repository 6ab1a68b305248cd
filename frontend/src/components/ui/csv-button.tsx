import { Button } from "@mantine/core";
import { useState } from "react";
import { networkError, toApiError } from "@/api/problem";
import { downloadText } from "@/lib/download";
import { ErrorState } from "./states";

const MOST_PER_PAGE = 500;

/** All pages of a CSV list as one text: the next page's cursor is in a header, and only the first keeps its head. */
export async function wholeCsv(path: string): Promise<string> {
  let text = "";
  let cursor: string | null = null;
  do {
    const url = new URL(path, window.location.origin);
    url.searchParams.set("limit", String(MOST_PER_PAGE));
    if (cursor) url.searchParams.set("cursor", cursor);
    const answer: Response = await fetch(url).catch(() => {
      throw networkError();
    });
    if (!answer.ok) throw toApiError(answer, await answer.json().catch(() => undefined));
    const page = await answer.text();
    text += text === "" ? page : page.slice(page.indexOf("\n") + 1);
    cursor = answer.headers.get("X-Next-Cursor");
  } while (cursor);
  return text;
}

/** Saves every row of a list, not its first page. */
export function CsvButton({ path, name, label = "CSV" }: { path: string; name: string; label?: string }) {
  const [isLoading, setLoading] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const save = async () => {
    setLoading(true);
    setProblem(null);
    try {
      downloadText(`${name}.csv`, "text/csv", await wholeCsv(path));
    } catch (error) {
      setProblem(error);
    } finally {
      setLoading(false);
    }
  };
  return (
    <>
      <Button variant="default" size="sm" loading={isLoading} onClick={() => void save()}>
        {label}
      </Button>
      {problem !== null && <ErrorState error={problem} bare />}
    </>
  );
}
