/** Entries that a page of the dashboard can still show; the service keeps fewer of each. */
const MOST_PAGES = 50;

interface Part<T> {
  items: T[];
  next_cursor: string | null;
}

/** All entries of a list that the service answers in parts; for lists that are short, but not always short. */
export async function wholeList<T>(
  part: (cursor: { cursor?: string }) => Promise<Part<T>>,
): Promise<{ items: T[] }> {
  const items: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const found: Part<T> = await part(cursor ? { cursor } : {});
    items.push(...found.items);
    cursor = found.next_cursor;
    if (!cursor) break;
  }
  return { items };
}
