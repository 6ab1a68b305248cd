import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const backend = process.env.HUGEPLAN_URL ?? "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    target: "es2022",
    sourcemap: false,
    manifest: true,
    chunkSizeWarningLimit: 600,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // What every page needs of the libraries is one file: split by who shares what, it compresses 3 KiB worse.
          groups: [
            {
              name: "libraries",
              tags: ["$initial"],
              test: /node_modules\/(@mantine|@tanstack|clsx|openapi-fetch|react|react-dom|scheduler|use-sync-external-store)\//,
              priority: 1,
            },
            // And so is the shell with the first page: fewer files arrive sooner, and one style sheet with them.
            { name: "app", tags: ["$initial"], test: /\/src\// },
          ],
        },
      },
    },
  },
  server: { proxy: { "/api": backend, "/healthz": backend } },
  test: {
    env: { TZ: "UTC" },
    restoreMocks: true,
    unstubGlobals: true,
    // A component test takes a second; on a machine that is busy with other work, several.
    testTimeout: 20_000,
    // The files of a worker share its modules: loading Mantine and a window for each file took ten times what the tests
    // take. So a test leaves no state behind, in modules or in the window.
    isolate: false,
    // What needs no window gets none. A file of logic that asks the browser for something says so in its first line.
    projects: [
      {
        extends: true,
        test: { name: "logic", environment: "node", include: ["src/**/*.test.ts"] },
      },
      {
        extends: true,
        test: {
          name: "components",
          environment: "jsdom",
          include: ["src/**/*.test.tsx"],
          setupFiles: ["src/test/setup.ts"],
        },
      },
    ],
  },
});
