import { deflateSync, inflateSync, strFromU8, strToU8 } from "fflate";

/**
 * The draft in the address: compressed, and in the fragment, which browsers do not send. So names of databases and nodes
 * are in no proxy's log, and hundreds of databases fit.
 */
const NAME = "draft=";
/** No draft is larger; a longer text is not unpacked. */
const MOST_BYTES = 4 * 1024 * 1024;

/** The fragment that holds `value`, without its hash sign. */
export function toFragment(value: unknown): string {
  const packed = deflateSync(strToU8(JSON.stringify(value)), { level: 6 });
  let binary = "";
  for (const byte of packed) binary += String.fromCharCode(byte);
  return NAME + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** What a fragment holds, with or without its hash sign; undefined where it is no draft or cut off. */
export function fromFragment(fragment: string): unknown {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(NAME)) return undefined;
  try {
    const binary = atob(text.slice(NAME.length).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
    // A buffer of a fixed size bounds what a made-up fragment can unpack to; it fails where that does not suffice.
    return JSON.parse(strFromU8(inflateSync(packed, { out: new Uint8Array(outBytes(packed)) })));
  } catch {
    return undefined;
  }
}

/** Whether a fragment means to hold a draft, readable or not. */
export function namesDraft(fragment: string): boolean {
  return fragment.replace(/^#/, "").startsWith(NAME);
}

/** Deflate packs at most 1,032 to one. */
function outBytes(packed: Uint8Array): number {
  return Math.min(MOST_BYTES, 1032 * packed.length + 64);
}
