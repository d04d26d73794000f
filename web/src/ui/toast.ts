import { h } from "./dom";

/** Passing messages in a corner, read out by screen readers. */
export class Toasts {
  readonly el = h("div", { class: "toasts", attrs: { role: "status", "aria-live": "polite" } });

  show(text: string, kind: "error" | "info" = "info"): void {
    if (!text) return;
    const t = h("div", { class: "toast " + kind, testid: "toast", text });
    if (kind === "error") t.setAttribute("role", "alert");
    t.addEventListener("click", () => t.remove());
    this.el.append(t);
    while (this.el.childElementCount > 4) this.el.firstElementChild?.remove();
    setTimeout(() => t.remove(), kind === "error" ? 9000 : 4500);
  }
}
