import { Tooltip } from "@mantine/core";
import type { ReactNode, RefObject } from "react";

interface HintBoxProps {
  id: string;
  target: RefObject<HTMLElement | null>;
  opened: boolean;
  label: ReactNode;
}

/** The hint itself, beside the element it belongs to. */
export default function HintBox({ id, target, opened, label }: HintBoxProps) {
  return <Tooltip target={target} opened={opened} label={<span id={id}>{label}</span>} />;
}
