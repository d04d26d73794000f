import { storageKey } from "./base";
import { load, save } from "./store";

export interface Settings {
  theme: "auto" | "light" | "dark";
  fontSize: number;
  fontFamily: string;
  lineHeight: number;
  cursorBlink: boolean;
  cursorStyle: "block" | "bar" | "underline";
  scrollback: number;
  bell: "none" | "visual" | "sound";
  notify: boolean;
  copyOnSelect: boolean;
  screenReader: boolean;
  webgl: boolean;
  optionIsMeta: boolean;
}

export const FONT_STACK =
  'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';

export const defaults: Settings = {
  theme: "auto",
  fontSize: 14,
  fontFamily: "",
  lineHeight: 1.15,
  cursorBlink: false,
  cursorStyle: "block",
  scrollback: 5000,
  bell: "visual",
  notify: false,
  copyOnSelect: false,
  screenReader: false,
  webgl: true,
  optionIsMeta: false,
};

const within = (n: unknown, low: number, high: number, fallback: number) =>
  typeof n === "number" && Number.isFinite(n) ? Math.min(high, Math.max(low, n)) : fallback;
const oneOf = <V>(v: unknown, values: readonly V[], fallback: V) =>
  values.includes(v as V) ? (v as V) : fallback;
const flag = (v: unknown, fallback: boolean) => (typeof v === "boolean" ? v : fallback);

/** Whatever was stored, by this build or another: only sound values come out. */
export function sane(s: Partial<Record<keyof Settings, unknown>>): Settings {
  const d = defaults;
  return {
    theme: oneOf(s.theme, ["auto", "light", "dark"] as const, d.theme),
    fontSize: Math.round(within(s.fontSize, 8, 40, d.fontSize)),
    fontFamily: typeof s.fontFamily === "string" ? s.fontFamily.slice(0, 200) : d.fontFamily,
    lineHeight: within(s.lineHeight, 1, 2, d.lineHeight),
    cursorBlink: flag(s.cursorBlink, d.cursorBlink),
    cursorStyle: oneOf(s.cursorStyle, ["block", "bar", "underline"] as const, d.cursorStyle),
    scrollback: Math.round(within(s.scrollback, 0, 200_000, d.scrollback)),
    bell: oneOf(s.bell, ["none", "visual", "sound"] as const, d.bell),
    notify: flag(s.notify, d.notify),
    copyOnSelect: flag(s.copyOnSelect, d.copyOnSelect),
    screenReader: flag(s.screenReader, d.screenReader),
    webgl: flag(s.webgl, d.webgl),
    optionIsMeta: flag(s.optionIsMeta, d.optionIsMeta),
  };
}

/** The user's font first, then what every system has. */
export function fontStack(s: Settings): string {
  const own = s.fontFamily.replace(/[^\p{L}\p{N} ,_"'-]/gu, "").trim();
  return own ? `${quoteFamily(own)}, ${FONT_STACK}` : FONT_STACK;
}

function quoteFamily(f: string): string {
  return f.includes(",") || /["']/.test(f) ? f : `"${f}"`;
}

type Listener = (s: Settings) => void;

/** The settings of this browser, the same in all tabs. */
export class SettingsStore {
  private value = sane(load(localStorage, storageKey("settings")) ?? {});
  private readonly listeners = new Set<Listener>();
  private readonly darkQuery = matchMedia("(prefers-color-scheme: dark)");

  constructor() {
    this.darkQuery.addEventListener("change", () => this.tell());
    addEventListener("storage", (e) => {
      if (e.key !== storageKey("settings")) return;
      this.value = sane(load(localStorage, storageKey("settings")) ?? {});
      this.tell();
    });
  }

  get now(): Settings {
    return this.value;
  }

  get dark(): boolean {
    return this.value.theme === "auto" ? this.darkQuery.matches : this.value.theme === "dark";
  }

  change(part: Partial<Settings>): void {
    this.value = sane({ ...this.value, ...part });
    save(localStorage, storageKey("settings"), this.value);
    this.tell();
  }

  listen(f: Listener): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  private tell(): void {
    for (const f of this.listeners) f(this.value);
  }
}
