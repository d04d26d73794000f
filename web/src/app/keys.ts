/**
 * The page's own shortcuts. Terminals tell Ctrl+letter and Ctrl+Shift+letter
 * apart only in rare modes, so Ctrl+Shift is what shells miss least; browsers
 * keep N, T and W for themselves.
 */
export interface Shortcut {
  keys: string;
  about: string;
  group: "Terminals" | "Text" | "Page";
  match: (e: KeyboardEvent) => boolean;
  run: (e: KeyboardEvent) => void;
  /** Also while a terminal has the focus. */
  everywhere: boolean;
}

export const ctrlShift =
  (...codes: string[]) =>
  (e: KeyboardEvent): boolean =>
    e.ctrlKey && e.shiftKey && !e.altKey && !e.metaKey && codes.includes(e.code);

export const altDigit = (e: KeyboardEvent): boolean =>
  e.altKey && !e.ctrlKey && !e.shiftKey && !e.metaKey && /^Digit[1-9]$/.test(e.code);

/** In a field of the page a plain character is text. */
export function inField(e: Event): boolean {
  const t = e.target;
  return t instanceof HTMLElement && t.closest("input, textarea, select, [contenteditable]") !== null;
}

export function dispatch(list: Shortcut[], e: KeyboardEvent): boolean {
  // A dialog or a menu has the keys for itself.
  if (document.querySelector("dialog[open], .menu")) return false;
  for (const s of list) {
    if (!s.match(e) || (!s.everywhere && inField(e))) continue;
    e.preventDefault();
    e.stopPropagation();
    s.run(e);
    return true;
  }
  return false;
}
