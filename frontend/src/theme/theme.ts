import {
  type CSSVariablesResolver,
  createTheme,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
  type VariantColorsResolver,
} from "@mantine/core";
import { token, tokenValue, tokenVariables } from "./tokens";

// Controls are ink, not a hue: the hues belong to page sizes and to parts of memory.
const ink: MantineColorsTuple = [
  "#f3f5f8",
  "#dfe6ee",
  "#c5cfda",
  "#a3afbd",
  "#7f8c9b",
  "#637183",
  "#4a586a",
  "#354353",
  "#243242",
  "#141d28",
];

const dark: MantineColorsTuple = [
  "#e4e9ef",
  "#c3ccd6",
  "#a3afbd",
  "#7f8c9b",
  "#3a4756",
  "#2c3845",
  "#202a36",
  "#18202a",
  "#10161d",
  "#0b1016",
];

const FONT =
  'Inter, "Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';
const MONO =
  'ui-monospace, "SFMono-Regular", "JetBrains Mono", Menlo, Consolas, "Liberation Mono", monospace';

/** Mantine picks the text on a filled control for one scheme only; ours has to change with the scheme. */
const variants: VariantColorsResolver = (input) => {
  const colors = defaultVariantColorsResolver(input);
  if (input.variant !== "filled" || (input.color !== undefined && input.color !== "ink")) return colors;
  return {
    ...colors,
    background: token("accent"),
    hover: token("accent-hover"),
    color: token("text-on-accent"),
  };
};

export const theme = createTheme({
  variantColorResolver: variants,
  colors: { ink, dark },
  primaryColor: "ink",
  primaryShade: { light: 8, dark: 1 },
  autoContrast: true,
  defaultRadius: "md",
  fontFamily: FONT,
  fontFamilyMonospace: MONO,
  cursorType: "pointer",
  respectReducedMotion: true,
  headings: {
    fontFamily: FONT,
    fontWeight: "600",
    sizes: {
      h1: { fontSize: "1.5rem", lineHeight: "1.3" },
      h2: { fontSize: "1.0625rem", lineHeight: "1.4" },
      h3: { fontSize: "0.9375rem", lineHeight: "1.45" },
    },
  },
  components: {
    Tooltip: {
      defaultProps: {
        withArrow: true,
        multiline: true,
        maw: 360,
      },
    },
    Anchor: { defaultProps: { underline: "always" }, classNames: { root: "hp-anchor" } },
    Skeleton: { defaultProps: { animate: false } },
  },
});

function schemeVariables(scheme: "light" | "dark"): Record<string, string> {
  return {
    ...tokenVariables(scheme),
    "--mantine-color-body": tokenValue("body", scheme),
    "--mantine-color-text": tokenValue("text", scheme),
    "--mantine-color-dimmed": tokenValue("text-dim", scheme),
    "--mantine-color-placeholder": tokenValue("text-dim", scheme),
    "--mantine-color-error": tokenValue("state-wrong", scheme),
    "--mantine-color-default": tokenValue("surface", scheme),
    "--mantine-color-default-hover": tokenValue("surface-hover", scheme),
    "--mantine-color-default-border": tokenValue("border", scheme),
    "--mantine-color-default-color": tokenValue("text", scheme),
    "--mantine-color-anchor": tokenValue("accent", scheme),
    "--input-bd": tokenValue("border-strong", scheme),
  };
}

/** Puts the tokens, and Mantine's own variables that must follow them, on the document. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: schemeVariables("light"),
  dark: schemeVariables("dark"),
});
