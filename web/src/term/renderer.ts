import { WebglAddon } from "@xterm/addon-webgl";
import type { Terminal } from "@xterm/xterm";

/**
 * Chooses the renderer. Browsers keep only some 16 WebGL contexts alive and
 * take the oldest away without asking, so only terminals that are seen hold
 * one; where a context is lost or refused, the DOM renderer goes on.
 */
export class Renderer {
  private addon: WebglAddon | null = null;
  private failures = 0;

  onChange: (kind: "webgl" | "dom") => void = () => {};

  constructor(private readonly term: Terminal) {}

  get kind(): "webgl" | "dom" {
    return this.addon ? "webgl" : "dom";
  }

  update(wanted: boolean): void {
    if (wanted && !this.addon && this.failures < 3) this.load();
    else if (!wanted && this.addon) this.unload();
  }

  private load(): void {
    const addon = new WebglAddon();
    addon.onContextLoss(() => {
      this.failures++;
      this.unload();
    });
    try {
      this.term.loadAddon(addon);
    } catch {
      // No WebGL 2 here: not asked again.
      this.failures = 3;
      addon.dispose();
      return;
    }
    this.addon = addon;
    this.onChange("webgl");
  }

  private unload(): void {
    const addon = this.addon;
    this.addon = null;
    addon?.dispose();
    this.onChange("dom");
  }
}
