import type { App } from "../app/app";
import type { ConnState } from "../conn/connection";
import { button, h, setData, setText } from "./dom";

export function describe(s: ConnState, now: number): string {
  switch (s.kind) {
    case "connecting":
      return "Connecting";
    case "connected":
      return "Connected";
    case "waiting": {
      const n = Math.ceil((s.until - now) / 1000);
      return n > 0 ? `Reconnecting in ${n} s` : "Reconnecting";
    }
    case "offline":
      return "Offline";
    case "refused":
      return "Refused";
    case "loggedout":
      return "Logged out";
  }
}

/** The state in words at the foot of the list, and a bar above the terminals when it is not well. */
export class ConnectionView {
  readonly badge = h("span", { class: "conn-badge", testid: "connection-state", attrs: { role: "status" } });
  private readonly barText = h("span");
  private readonly retry = button({
    class: "small",
    testid: "connection-retry",
    text: "Try now",
    on: { click: () => this.app.conn.retry() },
  });
  readonly bar = h("div", { class: "conn-bar", testid: "connection-bar" }, this.barText, this.retry);
  private timer: ReturnType<typeof setInterval> | undefined;
  private since = 0;

  constructor(private readonly app: App) {
    app.listen("conn", () => this.draw());
    this.draw();
  }

  private draw(): void {
    const s = this.app.conn.state;
    const now = Date.now();
    const text = describe(s, now);
    setText(this.badge, text);
    setData(this.badge, "state", s.kind);
    if (s.kind === "connected") this.since = 0;
    else this.since ||= now;
    const reason = "reason" in s ? s.reason : "";
    const trouble = s.kind === "waiting" || s.kind === "offline" || s.kind === "refused" || s.kind === "connecting";
    // A hiccup of half a second is not worth a bar that moves the page.
    this.bar.hidden = !trouble || (s.kind !== "refused" && now - this.since < 600);
    const typed = s.kind === "refused" ? "" : " What you type is kept and sent then.";
    setText(this.barText, [reason, text + "."].filter(Boolean).join(" ") + typed);
    this.retry.hidden = s.kind === "connecting";
    setData(this.bar, "state", s.kind);
    const ticking = s.kind !== "connected" && s.kind !== "refused" && s.kind !== "loggedout";
    if (ticking) this.timer ??= setInterval(() => this.draw(), 300);
    else {
      clearInterval(this.timer);
      this.timer = undefined;
    }
  }
}
