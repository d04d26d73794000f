import type { App } from "../app/app";
import { age, longTime } from "../app/format";
import * as L from "../app/layout";
import { textOf } from "../net/http";
import { commandOf, ended, endText, type Session } from "../net/sessions";
import { ask } from "./dialog";
import { button, h, setData, setText } from "./dom";
import { icon } from "./icons";

/** One session in the list; made once and then only changed. */
export class Row {
  private readonly dot = h("span", { class: "dot" });
  private readonly name = h("span", { class: "row-name", testid: "session-name" });
  private readonly mark = h("span", { class: "mark" });
  private readonly time = h("span", { class: "row-age" });
  private readonly status = h("span", { class: "row-status", testid: "session-status" });
  private readonly command = h("span", { class: "row-command" });
  private readonly meta = h("span", { class: "row-meta", testid: "session-meta" });
  private readonly open: HTMLButtonElement;
  private readonly rename: HTMLButtonElement;
  private readonly close: HTMLButtonElement;
  private readonly remove: HTMLButtonElement;
  private field: HTMLInputElement | null = null;
  private session!: Session;
  readonly el: HTMLLIElement;

  constructor(
    private readonly app: App,
    private readonly id: string,
    private readonly opened: () => void,
  ) {
    this.open = button(
      { class: "row-open", testid: "session-open", on: { click: () => this.openIt() } },
      h("span", { class: "row-line" }, this.dot, this.name, this.mark, this.time),
      h("span", { class: "row-line dim" }, this.status, this.command, this.meta),
    );
    this.rename = action("Rename", "rename", "pencil", () => this.startRename());
    this.close = action("End the session", "close", "stop", () => void endSession(this.app, this.id));
    this.remove = action("Remove from the list", "remove", "trash", () => void this.app.remove(this.id));
    this.el = h(
      "li",
      { class: "row", testid: "session-row", data: { sessionId: id } },
      this.open,
      h("span", { class: "row-actions" }, this.rename, this.close, this.remove),
    );
    this.el.addEventListener("keydown", (e) => {
      if (e.key === "F2" && !this.field) this.startRename();
    });
  }

  update(s: Session, now: number): void {
    this.session = s;
    const app = this.app;
    const over = ended(s);
    const label = app.label(s.id);
    const end = endText(s);
    setText(this.name, label);
    setText(this.time, age(s.created_at, now));
    setText(this.status, end);
    setText(this.command, commandOf(s));
    const viewers = s.viewers === 0 ? "" : s.viewers === 1 ? "1 viewer" : `${s.viewers} viewers`;
    setText(this.meta, [`${s.cols}×${s.rows}`, viewers].filter(Boolean).join(" · "));
    setData(this.el, "state", s.state);
    setData(this.el, "failed", over && s.exit_code !== 0 ? "true" : null);
    setData(this.el, "mark", app.marks.get(s.id) ?? null);
    const active = app.activeId === s.id;
    setData(this.el, "open", active ? "active" : L.tabOf(app.layout, s.id) ? "yes" : null);
    if (active) this.open.setAttribute("aria-current", "true");
    else this.open.removeAttribute("aria-current");
    this.open.title = [
      commandOf(s),
      s.cwd,
      `${s.state}${s.pid && !over ? `, pid ${s.pid}` : ""}${s.owner_name ? `, ${s.owner_name}` : ""}`,
      `since ${longTime(s.created_at)}`,
      s.error ?? "",
    ]
      .filter(Boolean)
      .join("\n");
    const markText = { output: "new output", bell: "bell", exit: "has ended" }[app.marks.get(s.id) ?? "output"];
    this.mark.title = app.marks.has(s.id) ? markText : "";
    this.open.setAttribute(
      "aria-label",
      [label, end || s.state, app.marks.has(s.id) ? markText : "", viewers].filter(Boolean).join(", "),
    );
    this.rename.hidden = over || !app.may("session.write");
    this.close.hidden = over || !app.may("session.close");
    this.remove.hidden = !over || !app.may("session.delete");
  }

  startRename(): void {
    if (this.field) return this.field.select();
    const field = h("input", {
      class: "row-rename",
      testid: "rename-input",
      label: "New name",
      attrs: { spellcheck: "false", autocapitalize: "none", maxlength: "128" },
    });
    this.field = field;
    field.value = this.session.name || this.app.label(this.id);
    let over = false;
    const finish = async (keep: boolean): Promise<void> => {
      if (over) return;
      over = true;
      const name = field.value.trim();
      if (keep && name && name !== this.session.name) {
        try {
          await this.app.rename(this.id, name);
        } catch (e) {
          over = false;
          field.setCustomValidity(textOf(e));
          field.reportValidity();
          this.app.toast(textOf(e), "error");
          return;
        }
      }
      this.field = null;
      const focused = document.activeElement === field;
      field.remove();
      setData(this.el, "renaming", null);
      if (focused) this.open.focus();
    };
    field.addEventListener("keydown", (e) => {
      e.stopPropagation();
      if (e.key === "Enter") void finish(true);
      else if (e.key === "Escape") void finish(false);
    });
    field.addEventListener("input", () => field.setCustomValidity(""));
    field.addEventListener("blur", () => void finish(field.checkValidity()));
    setData(this.el, "renaming", "true");
    this.el.append(field);
    field.focus();
    field.select();
  }

  private openIt(): void {
    this.app.open(this.id);
    this.app.focusActive();
    this.opened();
  }
}

function action(label: string, testid: string, name: Parameters<typeof icon>[0], run: () => void): HTMLButtonElement {
  return button({ class: "icon-button", label, testid, on: { click: run } }, icon(name));
}

export async function endSession(app: App, id: string): Promise<void> {
  const yes = await ask(
    `End ${app.label(id)}?`,
    "The command and everything it started are asked to stop, and killed if they do not within a few seconds. The output stays until the session is removed.",
    "End session",
  );
  if (yes) await app.end(id);
}
