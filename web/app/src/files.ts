// Downloads of files from the page.

/** Offers `content` as a download of this name; characters that no file name may have become dashes. */
export function saveFile(name: string, content: BlobPart, type = "application/octet-stream"): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = fileName(name);
  link.click();
  // The browser reads it after this turn.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export function fileName(name: string): string {
  return name.replace(/[\u0000-\u001f\u007f<>:"/\\|?*]+/g, "-");
}
