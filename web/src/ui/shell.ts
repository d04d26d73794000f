import type { App } from "../app/app";
import { altDigit, ctrlShift, dispatch, type Shortcut } from "../app/keys";
import * as L from "../app/layout";
import { ConnectionView } from "./connection";
import { Desk } from "./desk";
import { h } from "./dom";
import { helpDialog } from "./help";
import { KeyRow } from "./keyrow";
import type { MenuItem } from "./menu";
import { newDialog } from "./newdialog";
import { pasteInto } from "./paste";
import { endSession } from "./row";
import { settingsDialog } from "./settingsdialog";
import { Sidebar } from "./sidebar";
import { Tabs } from "./tabs";

const NARROW = matchMedia("(max-width: 720px)");

/** The whole page for somebody who is logged in. */
export class Shell {
  readonly el: HTMLElement;
  private readonly desk: Desk;
  private readonly sidebar: Sidebar;
  private readonly shortcuts: Shortcut[];

  constructor(
    private readonly app: App,
    private readonly build: string,
  ) {
    const conn = new ConnectionView(app);
    this.desk = new Desk(app);
    this.sidebar = new Sidebar(
      app,
      {
        settings: () => settingsDialog(app),
        help: () => this.help(),
        newDialog: () => newDialog(app),
        badge: conn.badge,
      },
      () => this.drawer(false),
    );
    const tabs = new Tabs(app, {
      drawer: () => this.toggleList(),
      search: () => this.search(),
      menu: () => this.menu(),
    });
    const shade = h("div", { class: "shade", on: { click: () => this.drawer(false) } });
    this.el = h(
      "div",
      { class: "app", testid: "app" },
      this.sidebar.el,
      shade,
      h("main", { class: "main" }, tabs.el, this.desk.el, new KeyRow(app).el),
    );
    this.desk.el.append(conn.bar);
    this.shortcuts = this.makeShortcuts();
    addEventListener("keydown", (e) => this.el.isConnected && dispatch(this.shortcuts, e), true);
    this.el.addEventListener("keydown", (e) => {
      if (e.key === "Escape" && this.el.classList.contains("drawer-open")) this.drawer(false);
    });
    const title = () => this.title();
    for (const t of ["marks", "layout", "list", "pane"] as const) app.listen(t, title);
    this.title();
  }

  private title(): void {
    const { app } = this;
    const loud = [...app.marks.values()].filter((m) => m !== "output").length;
    const mark = loud > 0 ? `(${loud}) ` : app.marks.size > 0 ? "• " : "";
    const id = app.activeId;
    const title = mark + (id ? `${app.label(id)} – ptyd` : "ptyd");
    if (document.title !== title) document.title = title;
  }

  private drawer(open: boolean): void {
    this.el.classList.toggle("drawer-open", open && NARROW.matches);
    if (open && NARROW.matches) this.sidebar.el.querySelector<HTMLElement>("button")?.focus();
    else if (!open && NARROW.matches) this.app.focusActive();
  }

  private toggleList(): void {
    if (NARROW.matches) this.drawer(!this.el.classList.contains("drawer-open"));
    else this.el.classList.toggle("list-hidden");
  }

  private search(): void {
    const id = this.app.activeId;
    if (id) this.desk.pane(id)?.openSearch();
  }

  private help(): void {
    const s = this.app.conn.state;
    helpDialog(this.shortcuts, s.kind === "connected" ? `ptyd ${s.hello.build}` : this.build);
  }

  private rename(): void {
    const id = this.app.activeId;
    if (!id) return;
    this.el.classList.remove("list-hidden");
    this.drawer(true);
    this.sidebar.startRename(id);
  }

  private font(by: number): void {
    const { settings } = this.app;
    settings.change({ fontSize: by === 0 ? 14 : settings.now.fontSize + by });
  }

  private async copy(): Promise<void> {
    const { app } = this;
    const view = app.active;
    if (!view) return;
    if (!view.term.hasSelection()) return app.toast("Nothing is selected.");
    app.toast((await view.copySelection()) ? "Copied." : "The browser refused to copy.", "info");
  }

  private menu(): (MenuItem | "line")[] {
    const { app } = this;
    const view = app.active;
    const id = app.activeId;
    if (!view || !id) return [];
    const item = (action: string, label: string, run: () => void, more: Partial<MenuItem> = {}): MenuItem => ({ action, label, run, ...more });
    const writes = !view.readOnly && !view.exited;
    return [
      item("copy", "Copy", () => void this.copy(), { key: "Ctrl+Shift+C", disabled: !view.term.hasSelection() }),
      item("paste", "Paste", () => void pasteInto(app), { key: "Ctrl+Shift+V", disabled: !writes }),
      item("select-all", "Select all", () => view.term.selectAll()),
      item("search", "Search…", () => this.search(), { key: "Ctrl+Shift+F" }),
      item("clear", "Clear the scrollback", () => view.term.clear(), { key: "Ctrl+Shift+K" }),
      "line",
      item("split-right", "Split to the right", () => void app.shell("row"), { key: "Ctrl+Shift+E", disabled: !app.may("session.create") }),
      item("split-down", "Split below", () => void app.shell("column"), { key: "Ctrl+Shift+O", disabled: !app.may("session.create") }),
      item("take-size", "Take the size", () => view.claim(), { disabled: view.size.you || !writes }),
      item("rename", "Rename…", () => this.rename(), { disabled: !writes || !app.may("session.write") }),
      "line",
      item("close-view", "Close this view", () => app.closeView(id), { key: "Ctrl+Shift+X" }),
      item("end", "End the session…", () => void endSession(app, id), { danger: true, disabled: !!view.exited || !app.may("session.close") }),
    ];
  }

  private makeShortcuts(): Shortcut[] {
    const { app } = this;
    const change = (f: (l: L.Layout) => L.Layout) => {
      app.change(f(app.layout));
      app.focusActive();
    };
    const s = (
      group: Shortcut["group"],
      keys: string,
      about: string,
      match: Shortcut["match"],
      run: Shortcut["run"],
      everywhere = true,
    ): Shortcut => ({ group, keys, about, match, run, everywhere });
    const creating = (place: "tab" | "row" | "column") => () => void (app.may("session.create") && app.shell(place));
    return [
      s("Terminals", "Ctrl+Shift+Enter", "New terminal", ctrlShift("Enter"), creating("tab")),
      s("Terminals", "Ctrl+Shift+E", "Split to the right", ctrlShift("KeyE"), creating("row")),
      s("Terminals", "Ctrl+Shift+O", "Split below", ctrlShift("KeyO"), creating("column")),
      s("Terminals", "Ctrl+Shift+X", "Close this view; the session goes on", ctrlShift("KeyX"), () => {
        if (app.activeId) app.closeView(app.activeId);
        app.focusActive();
      }),
      s("Terminals", "Alt+1 … Alt+9", "Tab by number", altDigit, (e) => {
        const tab = app.layout.tabs[Number(e.code.slice(5)) - 1];
        if (tab) change((l) => L.focusTab(l, tab.key));
      }),
      s("Terminals", "Ctrl+Shift+[ or ]", "Previous or next tab", ctrlShift("BracketLeft", "BracketRight"), (e) =>
        change((l) => L.step(l, e.code === "BracketLeft" ? -1 : 1)),
      ),
      s("Terminals", "Ctrl+Shift+Arrow", "To the pane beside", ctrlShift("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"), (e) =>
        change((l) => L.neighbour(l, e.code.slice(5).toLowerCase() as L.Direction)),
      ),
      s("Text", "Ctrl+Shift+C", "Copy the selection", ctrlShift("KeyC"), () => void this.copy()),
      // The browser's own doing: it fires the paste event, on plain http too.
      s("Text", "Ctrl+Shift+V", "Paste", () => false, () => {}),
      s("Text", "Ctrl+Shift+F", "Search in the scrollback", ctrlShift("KeyF"), () => this.search()),
      s("Text", "Ctrl+Shift+K", "Clear the scrollback", ctrlShift("KeyK"), () => app.active?.term.clear()),
      s("Text", "Shift+PageUp or PageDown", "Scroll", () => false, () => {}),
      s("Text", "Ctrl+Shift++ or -", "Larger or smaller text", ctrlShift("Equal", "NumpadAdd", "Minus", "NumpadSubtract"), (e) =>
        this.font(e.code === "Equal" || e.code === "NumpadAdd" ? 1 : -1),
      ),
      s("Text", "Ctrl+Shift+0", "Text of the usual size", ctrlShift("Digit0"), () => this.font(0)),
      s("Page", "Ctrl+Shift+L", "Show or hide the list", ctrlShift("KeyL"), () => this.toggleList()),
      s("Page", "F2", "Rename the session, in the list", () => false, () => {}),
      s("Page", "Ctrl+Shift+,", "Settings", ctrlShift("Comma"), () => settingsDialog(app)),
      s("Page", "/", "Filter the list, outside of terminals", (e) => e.key === "/" && !e.ctrlKey && !e.altKey && !e.metaKey, () => this.sidebar.focusFilter(), false),
      s("Page", "? or Ctrl+Shift+?", "This list; ? outside of terminals", (e) => e.key === "?" && !e.ctrlKey && !e.altKey && !e.metaKey, () => this.help(), false),
      s("Page", "", "", ctrlShift("Slash"), () => this.help()),
    ];
  }
}
