import type { App } from "../app/app";
import * as L from "../app/layout";
import { arrange, button, h } from "./dom";
import { icon } from "./icons";
import { Pane } from "./pane";

/** The terminals: the panes of all tabs, of which one tab is seen. */
export class Desk {
  private readonly panes = new Map<string, Pane>();
  private readonly pages = new Map<string, HTMLElement>();
  private readonly landing: HTMLElement;
  private shape = "";
  private readonly stage = h("div", { class: "stage" });
  readonly el = h("div", { class: "desk" }, this.stage);

  constructor(private readonly app: App) {
    this.landing = h(
      "div",
      { class: "landing", testid: "landing" },
      icon("terminal"),
      h("h2", { text: "No terminal is open" }),
      h("p", { text: "Sessions go on when you close this page. Come back any time." }),
      button(
        { class: "primary big", testid: "landing-new", on: { click: () => void app.shell() } },
        icon("plus"),
        "Open a shell",
      ),
      h("p", { class: "landing-hint" }, h("kbd", { text: "?" }), " lists the keyboard shortcuts"),
    );
    app.listen("layout", () => this.draw());
    app.listen("list", () => this.update());
    app.listen("user", () => this.update());
    app.listen("pane", (id) => (id === undefined ? this.update() : this.updateOne(id)));
    this.draw();
  }

  pane(id: string): Pane | undefined {
    return this.panes.get(id);
  }

  private draw(): void {
    const { layout, views } = this.app;
    for (const id of [...this.panes.keys()]) if (!views.has(id)) this.panes.delete(id);
    for (const [id, view] of views) {
      const old = this.panes.get(id);
      if (old?.view === view) continue;
      old?.el.remove();
      this.panes.set(id, new Pane(this.app, id, view, this.app.panes.get(id)!));
    }
    // Moving an element takes its focus and scrolling: only when the shape changed.
    const shape = JSON.stringify(layout.tabs.map((t) => [t.key, strip(t.root)]));
    if (shape !== this.shape) {
      this.shape = shape;
      this.build();
    }
    for (const t of layout.tabs) this.ratios(t.root, this.pages.get(t.key)!.firstElementChild as HTMLElement);
    for (const [key, page] of this.pages) page.classList.toggle("hidden", key !== layout.active);
    const tab = L.activeTab(layout);
    const seen = new Set(tab ? L.sessionsOf(tab.root) : []);
    this.landing.hidden = layout.tabs.length > 0;
    this.update();
    for (const [id, pane] of this.panes) {
      pane.view.show(seen.has(id));
      pane.view.open();
    }
  }

  private build(): void {
    const { layout } = this.app;
    const focused = document.activeElement;
    const pages = layout.tabs.map((t) => {
      const page = this.pages.get(t.key) ?? h("div", { class: "page", attrs: { role: "tabpanel" } });
      this.pages.set(t.key, page);
      page.replaceChildren(this.node(t.root, t.key, ""));
      return page;
    });
    const keys = new Set(layout.tabs.map((t) => t.key));
    for (const k of this.pages.keys()) if (!keys.has(k)) this.pages.delete(k);
    arrange(this.stage, [this.landing, ...pages]);
    // What had the focus gets it back, but never a pane that lost it to another.
    const pane = focused?.closest<HTMLElement>(".pane")?.dataset.sessionId;
    const stays = pane === undefined || pane === this.app.activeId;
    if (stays && focused instanceof HTMLElement && focused.isConnected && focused !== document.activeElement) {
      focused.focus({ preventScroll: true });
    }
  }

  private node(n: L.Node, key: string, path: string): HTMLElement {
    if (n.kind === "leaf") return this.panes.get(n.session)!.el;
    const bar = h("div", {
      class: "divider",
      label: "Resize the panes",
      attrs: {
        role: "separator",
        tabindex: "0",
        "aria-orientation": n.dir === "row" ? "vertical" : "horizontal",
        "aria-valuemin": "10",
        "aria-valuemax": "90",
      },
    });
    const box = h(
      "div",
      { class: "split " + n.dir },
      this.node(n.a, key, path + "a"),
      bar,
      this.node(n.b, key, path + "b"),
    );
    const set = (r: number) => this.app.change(L.resize(this.app.layout, key, path, r));
    bar.addEventListener("pointerdown", (e) => {
      bar.setPointerCapture(e.pointerId);
      e.preventDefault();
    });
    bar.addEventListener("pointermove", (e) => {
      if (!bar.hasPointerCapture(e.pointerId)) return;
      const r = box.getBoundingClientRect();
      set(n.dir === "row" ? (e.clientX - r.left) / r.width : (e.clientY - r.top) / r.height);
    });
    bar.addEventListener("dblclick", () => set(0.5));
    bar.addEventListener("keydown", (e) => {
      const now = Number(bar.getAttribute("aria-valuenow")) / 100;
      const less = n.dir === "row" ? "ArrowLeft" : "ArrowUp";
      const more = n.dir === "row" ? "ArrowRight" : "ArrowDown";
      if (e.key === less) set(now - 0.02);
      else if (e.key === more) set(now + 0.02);
      else return;
      e.preventDefault();
    });
    return box;
  }

  private ratios(n: L.Node, el: HTMLElement): void {
    if (n.kind === "leaf") return;
    const [a, bar, b] = [...el.children] as HTMLElement[];
    a!.style.flexGrow = String(n.ratio);
    b!.style.flexGrow = String(1 - n.ratio);
    bar!.setAttribute("aria-valuenow", String(Math.round(n.ratio * 100)));
    this.ratios(n.a, a!);
    this.ratios(n.b, b!);
  }

  private update(): void {
    for (const id of this.panes.keys()) this.updateOne(id);
    this.landing.querySelector("button")!.disabled = !this.app.may("session.create");
  }

  private updateOne(id: string): void {
    const pane = this.panes.get(id);
    const tab = L.tabOf(this.app.layout, id);
    if (!pane || !tab) return;
    pane.update(tab.root.kind === "leaf", tab.active === id && tab.root.kind === "split");
  }
}

function strip(n: L.Node): unknown {
  return n.kind === "leaf" ? n.session : [n.dir, strip(n.a), strip(n.b)];
}
