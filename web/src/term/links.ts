const allowed = new Set(["http:", "https:", "mailto:"]);

/** What a link in a terminal may open; anything else does nothing. */
export function allowedLink(text: string): string | null {
  try {
    const u = new URL(text);
    return allowed.has(u.protocol) ? u.href : null;
  } catch {
    return null;
  }
}

/** Opens without telling the target where it was opened from. */
export function openLink(text: string): void {
  const href = allowedLink(text);
  if (href) window.open(href, "_blank", "noopener,noreferrer");
}
