import type { App, PaneInfo } from "../app/app";
import { endText } from "../net/sessions";
import type { TerminalView } from "../term/view";
import { button, h, setData, setText } from "./dom";
import { icon } from "./icons";
import { SearchBar } from "./searchbar";

/** The frame around one terminal: its title where there are several, notices, its end. */
export class Pane {
  private readonly title = h("span", { class: "pane-title" });
  private readonly sub = h("span", { class: "pane-sub" });
  private readonly dims = h("span", { class: "pane-dims" });
  private readonly head: HTMLElement;
  private readonly link = h("div", { class: "pane-link" });
  private readonly notices = h("div", { class: "pane-notices", attrs: { role: "status" } });
  private readonly boxed: HTMLElement;
  private readonly boxedText = h("span");
  private readonly endBar: HTMLElement;
  private readonly endText = h("span", { class: "exit-status", testid: "exit-status" });
  private readonly again: HTMLButtonElement;
  private readonly remove: HTMLButtonElement;
  private readonly gone: HTMLElement;
  private readonly goneText = h("p");
  private readonly retry: HTMLButtonElement;
  private search: SearchBar | null = null;
  private flashes = 0;
  readonly el: HTMLElement;

  constructor(
    private readonly app: App,
    readonly id: string,
    readonly view: TerminalView,
    private readonly info: PaneInfo,
  ) {
    this.head = h(
      "header",
      { class: "pane-head" },
      this.title,
      this.sub,
      this.dims,
      button(
        { class: "icon-button", label: "Close this view; the session goes on", testid: "pane-close", on: { click: () => app.closeView(id) } },
        icon("x"),
      ),
    );
    this.boxed = h(
      "div",
      { class: "pane-boxed" },
      this.boxedText,
      button({ class: "small", testid: "take-size", text: "Take the size", on: { click: () => view.claim() } }),
    );
    this.again = button({ class: "small", testid: "run-again", on: { click: () => void app.runAgain(id) } }, icon("again"), "Run again");
    this.remove = button({ class: "small", testid: "pane-remove", on: { click: () => void app.remove(id) } }, icon("trash"), "Remove");
    this.endBar = h("div", { class: "pane-end" }, this.endText, this.again, this.remove);
    this.retry = button({ class: "primary", text: "Try again", on: { click: () => view.channel.again() } });
    this.gone = h(
      "div",
      { class: "pane-gone", attrs: { role: "alert" } },
      this.goneText,
      h(
        "div",
        { class: "dialog-buttons" },
        button({ text: "Close", on: { click: () => app.closeView(id) } }),
        this.retry,
      ),
    );
    this.el = h(
      "section",
      { class: "pane", testid: "terminal", data: { sessionId: id } },
      this.head,
      h("div", { class: "pane-body" }, view.host, this.notices, this.link),
    );
    this.el.addEventListener("pointerdown", (e) => {
      // A click beside a letterboxed terminal still means this pane.
      if (e.target instanceof Element && e.target.closest("button, input") === null) {
        requestAnimationFrame(() => !getSelection()?.toString() && view.focus());
      }
    });
  }

  update(alone: boolean, active: boolean): void {
    const { app, view, info } = this;
    const s = app.sessions.get(this.id);
    const label = app.label(this.id);
    this.head.hidden = alone;
    setText(this.title, label);
    setText(this.sub, info.title !== label ? info.title : "");
    setText(this.dims, `${view.term.cols}×${view.term.rows}`);
    this.el.setAttribute("aria-label", label);
    const exit = view.exited ?? (s && (s.state === "exited" || s.state === "lost") ? { code: s.exit_code, signal: s.signal, state: s.state } : null);
    setData(this.el, "state", exit ? "ended" : info.state === "live" ? "live" : info.state === "gone" ? "gone" : "attaching");
    setData(this.el, "cols", String(view.term.cols));
    setData(this.el, "rows", String(view.term.rows));
    setData(this.el, "renderer", view.renderer.kind);
    setData(this.el, "active", active ? "true" : null);
    setData(this.el, "letterbox", view.letterboxed ? "true" : null);
    setData(this.el, "you", view.size.you ? "true" : null);

    const body = this.el.querySelector<HTMLElement>(".pane-body")!;
    attach(body, this.boxed, view.letterboxed);
    setText(this.boxedText, `${view.term.cols}×${view.term.rows}, the size of ${view.size.owner ? "another viewer" : "the session"}`);
    this.boxed.querySelector("button")!.hidden = view.readOnly;

    attach(this.el, this.endBar, exit !== null);
    if (exit) {
      setText(this.endText, endText({ state: exit.state, exit_code: exit.code, signal: exit.signal }) || "ended");
      setData(this.endBar, "failed", exit.code === 0 ? null : "true");
      this.again.hidden = !s?.argv || !app.may("session.create");
      this.remove.hidden = !app.may("session.delete");
    }

    // What is still on the screen of a session that has ended is worth more
    // than the news that nobody else has it any more.
    attach(body, this.gone, info.state === "gone" && !(exit && view.offset > 0));
    setText(this.goneText, info.reason);
    this.retry.hidden = exit !== null;

    this.link.hidden = info.link === null;
    setText(this.link, info.link ?? "");
    this.drawNotices();
    if (info.flash !== this.flashes) {
      this.flashes = info.flash;
      this.el.classList.remove("flash");
      void this.el.offsetWidth;
      this.el.classList.add("flash");
    }
  }

  openSearch(): void {
    if (!this.search) {
      this.search = new SearchBar(
        this.view,
        () => this.app.settings.dark,
        () => {
          this.search = null;
          this.view.setSearching(false);
        },
      );
      this.view.setSearching(true);
      this.el.querySelector(".pane-body")!.append(this.search.el);
    }
    this.search.open();
  }

  private drawNotices(): void {
    const wanted = [...this.info.notices].map(([key, n]) => ({ key, n }));
    const now = new Map([...this.notices.children].map((c) => [(c as HTMLElement).dataset.key, c as HTMLElement]));
    for (const [key, el] of now) if (!this.info.notices.has(key ?? "")) el.remove();
    for (const { key, n } of wanted) {
      let el = now.get(key);
      if (!el) {
        el = h("div", { class: "notice", testid: "pane-notice", data: { key } }, h("span"));
        for (const a of n.actions) el.append(button({ class: "small", text: a.label, on: { click: a.run } }));
        this.notices.append(el);
      }
      setText(el.firstElementChild as HTMLElement, n.text);
    }
    if (this.view.readOnly && !this.view.exited) setData(this.el, "readonly", "true");
    else setData(this.el, "readonly", null);
  }
}

function attach(parent: HTMLElement, el: HTMLElement, wanted: boolean): void {
  if (wanted && el.parentElement !== parent) parent.append(el);
  else if (!wanted) el.remove();
}
