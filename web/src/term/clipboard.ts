/**
 * Writes to the clipboard. The modern way exists only on https and localhost;
 * on plain http a hidden field is selected and copied, which needs a click or
 * a key, as this always has.
 */
export async function copy(text: string): Promise<boolean> {
  if (text === "") return false;
  if (navigator.clipboard?.writeText) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // refused: the old way may still be allowed
    }
  }
  return copyByField(text);
}

function copyByField(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "offscreen";
  field.setAttribute("aria-hidden", "true");
  field.value = text;
  // A modal dialog makes everything outside of it unselectable.
  (before?.closest("dialog") ?? document.body).append(field);
  field.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  field.remove();
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  return done;
}

/** Reads the clipboard where the browser allows it; null where only a paste event may. */
export async function read(): Promise<string | null> {
  try {
    return (await navigator.clipboard?.readText()) ?? null;
  } catch {
    return null;
  }
}
