import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { cssVariables, theme } from "@/theme/theme";

/** Renders with the dashboard's theme and a fresh query client that never retries. */
export function renderWithTheme(children: ReactNode) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return render(
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables}>
      <QueryClientProvider client={queries}>{children}</QueryClientProvider>
    </MantineProvider>,
  );
}
