// Compresses what was built, once and as well as it goes, so that the server only hands files out.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const DIST = "dist";
const TEXT = /\.(js|css|svg|json|txt)$/;
// Below this size the headers weigh more than what is saved.
const SMALLEST_BYTES = 600;

for (const name of readdirSync(DIST, { recursive: true })) {
  if (!TEXT.test(name)) continue;
  const path = join(DIST, name);
  const content = readFileSync(path);
  if (content.length < SMALLEST_BYTES) continue;
  const brotli = brotliCompressSync(content, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    },
  });
  writeFileSync(`${path}.br`, brotli);
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
}
