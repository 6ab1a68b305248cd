import { Button } from "@mantine/core";
import { ErrorState } from "./states";

interface MoreRowsProps {
  /** A list that goes on, as TanStack Query gives it. */
  query: {
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    isFetchNextPageError: boolean;
    error: unknown;
    fetchNextPage: () => unknown;
  };
  /** What the rows are: "nodes". */
  what: string;
}

/** The end of a table that goes on: the next rows, or why they did not come. */
export function MoreRows({ query, what }: MoreRowsProps) {
  return (
    <>
      {query.isFetchNextPageError && <ErrorState error={query.error} bare />}
      {query.hasNextPage && (
        <Button
          variant="default"
          className="hp-start"
          mt="sm"
          onClick={() => void query.fetchNextPage()}
          loading={query.isFetchingNextPage}
        >
          Show more {what}
        </Button>
      )}
    </>
  );
}
