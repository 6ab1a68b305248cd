/** A file of an archive: its path and its text. */
export interface ZipFile {
  name: string;
  text: string;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (value >>> 8) ^ (TABLE[(value ^ byte) & 0xff] ?? 0);
  return (value ^ 0xffffffff) >>> 0;
}

function record(fields: readonly [size: 2 | 4, value: number][], rest: readonly Uint8Array[]): Uint8Array {
  const head = new DataView(new ArrayBuffer(fields.reduce((sum, [size]) => sum + size, 0)));
  let at = 0;
  for (const [size, value] of fields) {
    if (size === 2) head.setUint16(at, value, true);
    else head.setUint32(at, value, true);
    at += size;
  }
  return concat([new Uint8Array(head.buffer), ...rest]);
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// 1980-01-01, the first date that the format has: the same files give the same bytes.
const DATE = 0x21;
const UTF8_NAMES = 0x800;

/** A zip archive of text files, stored without compression (APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16). */
export function zipFiles(files: readonly ZipFile[]): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const local: Uint8Array[] = [];
  const central: Uint8Array[] = [];
  let offset = 0;
  for (const { name, text } of files) {
    const [path, data] = [encoder.encode(name), encoder.encode(text)];
    const common: [2 | 4, number][] = [
      [2, 20],
      [2, UTF8_NAMES],
      [2, 0],
      [2, 0],
      [2, DATE],
      [4, crc32(data)],
      [4, data.length],
      [4, data.length],
      [2, path.length],
      [2, 0],
    ];
    const entry = record([[4, 0x04034b50], ...common], [path, data]);
    central.push(
      record([[4, 0x02014b50], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]], [path]),
    );
    local.push(entry);
    offset += entry.length;
  }
  const directory = concat(central);
  const end = record(
    [
      [4, 0x06054b50],
      [2, 0],
      [2, 0],
      [2, files.length],
      [2, files.length],
      [4, directory.length],
      [4, offset],
      [2, 0],
    ],
    [],
  );
  return concat([...local, directory, end]);
}
