import { readFileSync } from "node:fs";
import openapiTS, { astToString, COMMENT_HEADER } from "openapi-typescript";
import { expect, it } from "vitest";

const openapi = new URL("../../../backend/openapi.json", import.meta.url);

it("is generated from the committed openapi.json (npm run api mends it)", async () => {
  const generated = COMMENT_HEADER + astToString(await openapiTS(openapi));
  const committed = readFileSync(new URL("./schema.ts", import.meta.url), "utf8");
  expect(committed === generated, "src/api/schema.ts is stale: run npm run api").toBe(true);
}, 30_000);
