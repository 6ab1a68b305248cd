import { Skeleton, Stack } from "@mantine/core";
import classes from "./states.module.css";

/** Shapes of what is about to be shown. */
export function TableSkeleton({ rows = 6 }: { rows?: number }) {
  return (
    <Stack gap={10} p="md" className={classes.box}>
      <Skeleton height={14} width="35%" />
      {Array.from({ length: rows }, (_, index) => index).map((row) => (
        <Skeleton key={row} height={30} />
      ))}
    </Stack>
  );
}

export function CardSkeleton({ height = 220 }: { height?: number }) {
  return (
    <Stack gap={12} p="md" className={classes.box}>
      <Skeleton height={16} width="45%" />
      <Skeleton height={height} />
    </Stack>
  );
}

export function PageSkeleton() {
  return (
    <Stack gap="md">
      <Skeleton height={28} width={260} />
      <Skeleton height={18} width="60%" />
      <CardSkeleton height={90} />
      <CardSkeleton />
    </Stack>
  );
}
