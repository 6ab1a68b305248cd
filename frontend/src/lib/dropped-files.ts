/** Files that somebody dropped on a page without a use for them, until the page that has one takes them. */
let left: readonly File[] = [];

export function leaveFiles(files: readonly File[]): void {
  left = files;
}

/** The files that were left, once. */
export function takeLeftFiles(): readonly File[] {
  const taken = left;
  left = [];
  return taken;
}
