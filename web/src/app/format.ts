/** "now", "5 m", "3 h", "2 d": one unit is enough in a list. */
export function age(then: string, now: number): string {
  const s = Math.max(0, (now - Date.parse(then)) / 1000);
  if (!Number.isFinite(s)) return "";
  if (s < 45) return "now";
  if (s < 3600) return `${Math.max(1, Math.round(s / 60))} m`;
  if (s < 86_400) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

export function longTime(iso: string): string {
  const d = new Date(iso);
  return Number.isNaN(d.getTime()) ? "" : d.toLocaleString();
}

/**
 * Splits a command line as a POSIX shell would, without expanding anything:
 * quotes and backslashes group. null: a quote is left open.
 */
export function splitCommand(line: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quote === "'") {
      if (c === "'") quote = "";
      else word = (word ?? "") + c;
    } else if (quote === '"') {
      if (c === '"') quote = "";
      else if (c === "\\" && `"\\$\``.includes(line[i + 1] ?? " ")) word = (word ?? "") + line[++i]!;
      else word = (word ?? "") + c;
    } else if (c === "'" || c === '"') {
      quote = c;
      word ??= "";
    } else if (c === "\\") {
      if (i + 1 >= line.length) return null;
      word = (word ?? "") + line[++i];
    } else if (/\s/.test(c)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? "") + c;
    }
  }
  if (quote) return null;
  if (word !== null) words.push(word);
  return words;
}
