/** True if the text is now on the clipboard. Browsers offer that in secure contexts only, and may still say no. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
