import type { FitAddon } from "@xterm/addon-fit";
import type { Terminal } from "@xterm/xterm";

export interface Dims {
  cols: number;
  rows: number;
}

const SMALLEST_FONT = 5;

/**
 * Places a terminal of the session's size into its pane. Usually the two
 * agree. Where the size belongs to somebody else the terminal keeps theirs:
 * centred when it is smaller than the pane, in a smaller font when it is larger.
 */
export class Fitter {
  private boxed = false;

  constructor(
    private readonly term: Terminal,
    private readonly fit: FitAddon,
    private readonly host: HTMLElement,
    private readonly baseFont: () => number,
  ) {}

  get letterboxed(): boolean {
    return this.boxed;
  }

  /** The size that would fill the pane; null while it has none. */
  propose(): Dims | null {
    if (this.host.clientWidth < 40 || this.host.clientHeight < 20) return null;
    this.setFont(this.baseFont());
    const d = this.fit.proposeDimensions();
    if (!d || !(d.cols > 1) || !(d.rows > 0)) return null;
    return { cols: Math.min(d.cols, 1000), rows: Math.min(d.rows, 1000) };
  }

  fill(): void {
    this.boxed = false;
    this.setFont(this.baseFont());
    const style = this.term.element?.style;
    if (style) style.width = style.height = "";
  }

  letterbox(): void {
    const el = this.term.element;
    const screen = el?.querySelector<HTMLElement>(".xterm-screen");
    if (!el || !screen || this.host.clientWidth === 0) return;
    this.boxed = true;
    const css = getComputedStyle(el);
    const px = (name: string) => parseFloat(css.getPropertyValue(name)) || 0;
    const extraX = px("padding-left") + px("padding-right") + 14 + 2;
    const extraY = px("padding-top") + px("padding-bottom") + 2;
    const room = { x: this.host.clientWidth - extraX, y: this.host.clientHeight - extraY };
    let font = this.baseFont();
    this.setFont(font);
    // Cells are whole device pixels, so the size is found by trying.
    for (let tries = 0; tries < 8 && font > SMALLEST_FONT; tries++) {
      const over = Math.max(screen.offsetWidth / room.x, screen.offsetHeight / room.y);
      if (over <= 1) break;
      font = Math.max(SMALLEST_FONT, Math.min(font - 0.5, Math.floor((font / over) * 2) / 2));
      this.setFont(font);
    }
    el.style.width = `${screen.offsetWidth + extraX}px`;
    el.style.height = `${screen.offsetHeight + extraY}px`;
  }

  private setFont(size: number): void {
    if (this.term.options.fontSize !== size) this.term.options.fontSize = size;
  }
}
