import "./theme/mantine.css";
import "./theme/global.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { watchStyles } from "./api/load-part";
import { createQueryClient } from "./api/query-client";
import { createAppRouter } from "./router";
import { shareStyleNonce, styleNonce } from "./theme/style-nonce";
import { cssVariables, theme } from "./theme/theme";

const queryClient = createQueryClient(() => void router.invalidate());
const router = createAppRouter(queryClient);

shareStyleNonce();
watchStyles(document);

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={cssVariables}
        defaultColorScheme="auto"
        // Mantine writes its variables itself, for this theme: a style sheet with its own would only repeat them.
        deduplicateCssVariables={false}
        getStyleNonce={styleNonce}
      >
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
