/** Saves text as a file of the reader's browser. */
export function downloadText(filename: string, mediaType: string, content: string): void {
  save(filename, new Blob([content], { type: `${mediaType};charset=utf-8` }));
}

function save(filename: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = filename;
  document.body.append(link);
  link.click();
  link.remove();
  // The browser reads the address after this task; releasing it at once would lose the file.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
