import { Button } from "@mantine/core";

/** Saves every row of a list, not its first page: without a limit the service sends the whole list as it reads it. */
export function CsvButton({ path, label = "CSV" }: { path: string; label?: string }) {
  return (
    <Button component="a" href={path} download variant="default" size="sm">
      {label}
    </Button>
  );
}
