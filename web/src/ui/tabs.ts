import type { App } from "../app/app";
import * as L from "../app/layout";
import { arrange, button, h, setData, setText } from "./dom";
import { icon } from "./icons";
import { openMenu, type MenuItem } from "./menu";

export interface TabDoors {
  drawer(): void;
  search(): void;
  menu(): (MenuItem | "line")[];
}

interface TabEl {
  el: HTMLElement;
  label: HTMLElement;
}

/** The row of tabs, with the tools for the active terminal at its end. */
export class Tabs {
  private readonly tabs = new Map<string, TabEl>();
  private readonly strip = h("div", { class: "tab-strip", attrs: { role: "tablist", "aria-label": "Open terminals" } });
  private readonly tools: HTMLButtonElement[];
  private readonly create: HTMLButtonElement;
  readonly el: HTMLElement;

  constructor(
    private readonly app: App,
    doors: TabDoors,
  ) {
    const tool = (label: string, testid: string, name: Parameters<typeof icon>[0], run: () => void) =>
      button({ class: "icon-button", label, testid, on: { click: run } }, icon(name));
    this.create = tool("New terminal (Ctrl+Shift+Enter)", "tab-new", "plus", () => void app.shell());
    const more = tool("More", "pane-menu", "more", () => openMenu(more, doors.menu()));
    more.setAttribute("aria-haspopup", "menu");
    this.tools = [
      tool("Split to the right (Ctrl+Shift+E)", "split-right", "right", () => void app.shell("row")),
      tool("Split below (Ctrl+Shift+O)", "split-down", "down", () => void app.shell("column")),
      tool("Search (Ctrl+Shift+F)", "search", "search", () => doors.search()),
      more,
    ];
    const drawer = tool("List of sessions (Ctrl+Shift+L)", "drawer", "list", () => doors.drawer());
    this.el = h("div", { class: "tab-bar" }, drawer, this.strip, this.create, h("span", { class: "spring" }), ...this.tools);
    // A click on a tool leaves the focus in the terminal.
    this.el.addEventListener("mousedown", (e) => {
      if (e.target instanceof Element && e.target.closest("button.icon-button")) e.preventDefault();
    });
    this.strip.addEventListener("keydown", (e) => this.keys(e));
    this.strip.addEventListener("wheel", (e) => {
      if (e.deltaY && !e.deltaX) this.strip.scrollLeft += e.deltaY;
    }, { passive: true });
    for (const t of ["layout", "marks", "list", "user"] as const) app.listen(t, () => this.draw());
    app.listen("pane", () => this.draw());
    this.draw();
  }

  private draw(): void {
    const { app } = this;
    const l = app.layout;
    const keys = new Set(l.tabs.map((t) => t.key));
    for (const k of this.tabs.keys()) if (!keys.has(k)) this.tabs.delete(k);
    arrange(
      this.strip,
      l.tabs.map((t) => this.tab(t).el),
    );
    const none = l.tabs.length === 0;
    for (const t of this.tools) t.disabled = none;
    const creating = app.may("session.create");
    this.create.disabled = !creating;
    this.tools[0]!.disabled = this.tools[1]!.disabled = none || !creating;
  }

  private tab(t: L.Tab): TabEl {
    const { app } = this;
    let tab = this.tabs.get(t.key);
    if (!tab) this.tabs.set(t.key, (tab = this.make(t.key)));
    const inside = L.sessionsOf(t.root);
    const label = app.label(t.active) + (inside.length > 1 ? ` +${inside.length - 1}` : "");
    const selected = app.layout.active === t.key;
    setText(tab.label, label);
    tab.el.title = inside
      .map((id) => [app.label(id), app.panes.get(id)?.title].filter(Boolean).join(" – "))
      .join("\n");
    setData(tab.el, "sessionId", t.active);
    const marks = inside.map((id) => app.marks.get(id));
    const mark = (["exit", "bell", "output"] as const).find((m) => marks.includes(m)) ?? null;
    setData(tab.el, "mark", mark);
    const ended = inside.every((id) => app.views.get(id)?.exited);
    setData(tab.el, "ended", ended ? "true" : null);
    const was = tab.el.getAttribute("aria-selected");
    tab.el.setAttribute("aria-selected", String(selected));
    tab.el.tabIndex = selected ? 0 : -1;
    if (selected && was !== "true") requestAnimationFrame(() => tab.el.scrollIntoView({ block: "nearest", inline: "nearest" }));
    return tab;
  }

  private make(key: string): TabEl {
    const { app } = this;
    const label = h("span", { class: "tab-label" });
    const close = button(
      {
        class: "tab-close",
        label: "Close the tab; its sessions go on",
        testid: "tab-close",
        attrs: { tabindex: "-1" },
        on: {
          click: (e) => {
            e.stopPropagation();
            this.closeTab(key);
          },
        },
      },
      icon("x"),
    );
    const el = h(
      "div",
      { class: "tab", testid: "tab", attrs: { role: "tab", draggable: "true" } },
      h("span", { class: "mark" }),
      label,
      close,
    );
    const select = () => {
      app.change(L.focusTab(app.layout, key));
      app.focusActive();
    };
    el.addEventListener("click", select);
    el.addEventListener("auxclick", (e) => {
      if (e.button === 1) this.closeTab(key);
    });
    el.addEventListener("keydown", (e) => {
      if (e.target !== el) return;
      if (e.key === "Enter" || e.key === " ") select();
      else if (e.key === "Delete") this.closeTab(key);
      else return;
      e.preventDefault();
    });
    el.addEventListener("dragstart", (e) => {
      e.dataTransfer?.setData("application/x-ptyd-tab", key);
      el.classList.add("dragged");
    });
    el.addEventListener("dragend", () => el.classList.remove("dragged"));
    el.addEventListener("dragover", (e) => {
      if (e.dataTransfer?.types.includes("application/x-ptyd-tab")) e.preventDefault();
    });
    el.addEventListener("drop", (e) => {
      const from = e.dataTransfer?.getData("application/x-ptyd-tab");
      if (!from) return;
      e.preventDefault();
      const tabs = app.layout.tabs.map((t) => t.key);
      const behind = tabs.indexOf(from) < tabs.indexOf(key);
      app.change(L.move(app.layout, from, behind ? (tabs[tabs.indexOf(key) + 1] ?? null) : key));
    });
    return { el, label };
  }

  private closeTab(key: string): void {
    const t = this.app.layout.tabs.find((x) => x.key === key);
    if (t) for (const id of L.sessionsOf(t.root)) this.app.closeView(id);
    this.app.focusActive();
  }

  private keys(e: KeyboardEvent): void {
    const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (!by || !(e.target instanceof HTMLElement) || e.target.getAttribute("role") !== "tab") return;
    e.preventDefault();
    this.app.change(L.step(this.app.layout, by));
    this.strip.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
  }
}
