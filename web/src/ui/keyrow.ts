import type { App } from "../app/app";
import { button, h } from "./dom";

/** Keys that touch keyboards lack. Ctrl and Alt hold for the next character. */
export class KeyRow {
  private held: "ctrl" | "alt" | null = null;
  private readonly ctrl: HTMLButtonElement;
  private readonly alt: HTMLButtonElement;
  readonly el: HTMLElement;

  constructor(private readonly app: App) {
    this.ctrl = this.key("Ctrl", "key-ctrl", () => this.hold("ctrl"));
    this.alt = this.key("Alt", "key-alt", () => this.hold("alt"));
    this.ctrl.setAttribute("aria-pressed", "false");
    this.alt.setAttribute("aria-pressed", "false");
    this.el = h(
      "div",
      { class: "key-row", testid: "key-row", label: "Extra keys", attrs: { role: "toolbar" } },
      this.key("Esc", "key-esc", () => this.send("\x1b")),
      this.key("Tab", "key-tab", () => this.send("\t")),
      this.ctrl,
      this.alt,
      this.key("←", "key-left", () => this.arrow("D"), "Left"),
      this.key("↓", "key-down", () => this.arrow("B"), "Down"),
      this.key("↑", "key-up", () => this.arrow("A"), "Up"),
      this.key("→", "key-right", () => this.arrow("C"), "Right"),
      this.key("/", "key-slash", () => this.send("/"), "Slash"),
      this.key("-", "key-dash", () => this.send("-"), "Dash"),
      this.key("|", "key-pipe", () => this.send("|"), "Pipe"),
    );
    // The terminal keeps the focus, or the keyboard of a phone would go away.
    this.el.addEventListener("pointerdown", (e) => e.preventDefault());
  }

  private key(text: string, testid: string, run: () => void, label = text): HTMLButtonElement {
    return button({ text, testid, label, attrs: { tabindex: "-1" }, on: { click: run } });
  }

  private send(data: string): void {
    this.app.active?.type(this.take(data));
  }

  private arrow(letter: string): void {
    const view = this.app.active;
    if (!view) return;
    const mod = this.held === "ctrl" ? 5 : this.held === "alt" ? 3 : 0;
    this.hold(null);
    const plain = view.term.modes.applicationCursorKeysMode ? "\x1bO" : "\x1b[";
    view.type(mod ? `\x1b[1;${mod}${letter}` : plain + letter);
  }

  private hold(k: "ctrl" | "alt" | null): void {
    this.held = this.held === k ? null : k;
    this.ctrl.setAttribute("aria-pressed", String(this.held === "ctrl"));
    this.alt.setAttribute("aria-pressed", String(this.held === "alt"));
    for (const v of this.app.views.values()) {
      v.transform = this.held ? (data) => this.take(data) : null;
    }
  }

  private take(data: string): string {
    const held = this.held;
    if (!held) return data;
    this.hold(null);
    return modified(data, held);
  }
}

/** "c" with Ctrl is 0x03, with Alt it is Escape and "c". */
export function modified(data: string, mod: "ctrl" | "alt"): string {
  if (mod === "alt") return "\x1b" + data;
  const first = data[0]?.toUpperCase() ?? "";
  if (data.length !== 1) return data;
  if (first >= "@" && first <= "_") return String.fromCharCode(first.charCodeAt(0) - 64);
  if (first === " ") return "\0";
  if (first === "?") return "\x7f";
  if (first === "/") return "\x1f";
  return data;
}
