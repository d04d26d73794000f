import type { App } from "../app/app";
import { commandOf, ended, type Session } from "../net/sessions";
import { ask } from "./dialog";
import { arrange, button, h, setText } from "./dom";
import { icon } from "./icons";
import { Row } from "./row";

interface Doors {
  settings(): void;
  help(): void;
  newDialog(): void;
  badge: HTMLElement;
}

/** The list of sessions, with what stands above and below it. */
export class Sidebar {
  private readonly rows = new Map<string, Row>();
  private readonly living = h("ul", { class: "rows", testid: "session-list", label: "Sessions" });
  private readonly over = h("ul", { class: "rows", testid: "session-list-ended", label: "Ended sessions" });
  private readonly overHead: HTMLElement;
  private readonly overCount = h("span", { class: "count" });
  private readonly nothing = h("p", { class: "list-empty" });
  private readonly who = h("span", { class: "who" });
  private readonly filter = h("input", {
    class: "filter",
    testid: "session-filter",
    label: "Filter sessions",
    attrs: { type: "search", placeholder: "Filter", spellcheck: "false" },
  });
  private readonly create: HTMLButtonElement;
  private readonly options: HTMLButtonElement;
  private readonly removeEnded: HTMLButtonElement;
  private shownOver: Session[] = [];
  readonly el: HTMLElement;

  constructor(
    private readonly app: App,
    doors: Doors,
    private readonly chosen: () => void,
  ) {
    this.create = button(
      {
        class: "primary",
        testid: "new-terminal",
        title: "Open a shell (Ctrl+Shift+Enter)",
        on: { click: () => void app.shell().then(chosen) },
      },
      icon("plus"),
      "New terminal",
    );
    this.options = button(
      { class: "primary narrow", label: "New terminal with options", testid: "new-terminal-options", on: { click: () => doors.newDialog() } },
      icon("options"),
    );
    this.removeEnded = button({
      class: "link",
      testid: "remove-ended",
      text: "Remove all",
      on: { click: () => void this.removeAll() },
    });
    this.overHead = h("div", { class: "list-head" }, h("span", { text: "Ended" }), this.overCount, this.removeEnded);
    this.filter.addEventListener("input", () => this.draw());
    this.filter.addEventListener("keydown", (e) => {
      if (e.key === "Escape" && this.filter.value) {
        e.stopPropagation();
        this.filter.value = "";
        this.draw();
      }
    });
    const foot = (label: string, testid: string, name: Parameters<typeof icon>[0], run: () => void) =>
      button({ class: "icon-button", label, testid, on: { click: run } }, icon(name));
    this.el = h(
      "aside",
      { class: "sidebar", label: "Sessions" },
      h("div", { class: "side-top" }, h("div", { class: "split-button" }, this.create, this.options), this.filter),
      h("nav", { class: "side-list", label: "Sessions" }, this.nothing, this.living, this.overHead, this.over),
      h(
        "footer",
        { class: "side-foot" },
        h("div", { class: "side-who" }, doors.badge, this.who),
        foot("Keyboard shortcuts", "help", "help", doors.help),
        foot("Settings", "settings", "gear", doors.settings),
        foot("Log out", "logout", "logout", () => void app.logout()),
      ),
    );
    this.el.addEventListener("keydown", (e) => this.move(e));
    for (const t of ["list", "layout", "marks", "user"] as const) app.listen(t, () => this.draw());
    app.listen("pane", () => this.drawSoon());
    // Ages grow by themselves.
    setInterval(() => document.visibilityState === "visible" && this.draw(), 20_000);
    this.draw();
  }

  focusFilter(): void {
    this.filter.focus();
    this.filter.select();
  }

  startRename(id: string): void {
    this.filter.value = "";
    this.draw();
    this.rows.get(id)?.startRename();
  }

  private pending = false;
  private drawSoon(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  private draw(): void {
    const app = this.app;
    const now = Date.now();
    const all = app.sessions.all;
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (s: Session) => `${app.label(s.id)} ${s.name} ${commandOf(s)} ${s.cwd} ${s.owner_name} ${s.state}`.toLowerCase();
    const shown = all.filter((s) => {
      const t = words.length ? text(s) : "";
      return words.every((w) => t.includes(w));
    });
    const known = new Set(all.map((s) => s.id));
    for (const id of this.rows.keys()) if (!known.has(id)) this.rows.delete(id);
    const newest = (a: Session, b: Session) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : 0);
    const draw = (list: Session[]) =>
      list.sort(newest).map((s) => {
        let row = this.rows.get(s.id);
        if (!row) this.rows.set(s.id, (row = new Row(app, s.id, this.chosen)));
        row.update(s, now);
        return row.el;
      });
    const alive = shown.filter((s) => !ended(s));
    const over = (this.shownOver = shown.filter(ended));
    arrange(this.living, draw(alive));
    arrange(this.over, draw(over));
    this.overHead.hidden = over.length === 0;
    setText(this.overCount, String(over.length));
    this.removeEnded.hidden = !app.may("session.delete");
    setText(
      this.nothing,
      !app.sessions.loaded ? "" : all.length === 0 ? "No sessions yet." : shown.length === 0 ? "Nothing matches." : "",
    );
    this.nothing.hidden = this.nothing.textContent === "";
    setText(this.who, app.user ? `${app.user.name} · ${app.user.role}` : "");
    this.create.disabled = this.options.disabled = !app.may("session.create");
  }

  /** Up and down go through the list; Enter is the button's own. */
  private move(e: KeyboardEvent): void {
    if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
    if (e.target instanceof HTMLInputElement && e.target !== this.filter) return;
    const buttons = [...this.el.querySelectorAll<HTMLButtonElement>(".row-open")];
    if (buttons.length === 0) return;
    const at = buttons.indexOf(e.target as HTMLButtonElement);
    const to = at < 0 ? 0 : at + (e.key === "ArrowDown" ? 1 : -1);
    e.preventDefault();
    if (to < 0) this.filter.focus();
    else buttons[Math.min(to, buttons.length - 1)]!.focus();
  }

  private async removeAll(): Promise<void> {
    const over = this.shownOver;
    const yes = await ask(
      over.length === 1 ? "Remove the ended session?" : `Remove ${over.length} ended sessions?`,
      "Their output and exit status are gone then.",
      "Remove",
    );
    if (!yes) return;
    for (const s of over) await this.app.remove(s.id);
  }
}
