import type { ISearchOptions } from "@xterm/addon-search";
import { searchColors } from "../term/palette";
import type { TerminalView } from "../term/view";
import { button, h, setText } from "./dom";
import { icon } from "./icons";

/** Search in one terminal's scrollback, as one types. */
export class SearchBar {
  private readonly input = h("input", {
    testid: "search-input",
    label: "Search in the terminal",
    attrs: { type: "text", placeholder: "Search", spellcheck: "false", autocapitalize: "none" },
  });
  private readonly count = h("span", { class: "search-count", testid: "search-count", attrs: { role: "status" } });
  private readonly options: Record<"caseSensitive" | "regex" | "wholeWord", boolean> = {
    caseSensitive: false,
    regex: false,
    wholeWord: false,
  };
  private readonly results: { dispose(): void };
  readonly el: HTMLElement;

  constructor(
    private readonly view: TerminalView,
    private readonly dark: () => boolean,
    private readonly closed: () => void,
  ) {
    const step = (label: string, testid: string, name: "up" | "below", run: () => void) =>
      button({ class: "icon-button", label, testid, on: { click: run } }, icon(name));
    this.el = h(
      "div",
      { class: "search-bar", testid: "search-bar", attrs: { role: "search" } },
      this.input,
      this.count,
      this.toggle("Aa", "Match case", "caseSensitive"),
      this.toggle("W", "Whole words", "wholeWord"),
      this.toggle(".*", "Regular expression", "regex"),
      step("Previous match (Shift+Enter)", "search-prev", "up", () => this.find(-1)),
      step("Next match (Enter)", "search-next", "below", () => this.find(1)),
      button({ class: "icon-button", label: "Close the search (Escape)", testid: "search-close", on: { click: () => this.close() } }, icon("x")),
    );
    this.input.addEventListener("input", () => this.find(0));
    this.el.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.close();
      else if (e.key === "Enter" && e.target === this.input) this.find(e.shiftKey ? -1 : 1);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    this.results = view.search.onDidChangeResults(({ resultIndex, resultCount }) => {
      setText(
        this.count,
        this.input.value === "" ? "" : resultCount === 0 ? "None" : resultIndex < 0 ? `${resultCount}+` : `${resultIndex + 1} of ${resultCount}`,
      );
    });
  }

  open(): void {
    const selected = this.view.term.getSelection();
    if (selected && !selected.includes("\n")) this.input.value = selected;
    this.input.focus();
    this.input.select();
    if (this.input.value) this.find(0);
  }

  close(): void {
    this.results.dispose();
    this.view.search.clearDecorations();
    this.el.remove();
    this.closed();
    this.view.focus();
  }

  private toggle(text: string, label: string, option: keyof typeof this.options): HTMLButtonElement {
    const b = button({ class: "toggle", text, label, attrs: { "aria-pressed": "false" } });
    b.addEventListener("click", () => {
      this.options[option] = !this.options[option];
      b.setAttribute("aria-pressed", String(this.options[option]));
      this.find(0);
      this.input.focus();
    });
    return b;
  }

  /** 1: next, -1: previous, 0: what was typed changed. */
  private find(way: -1 | 0 | 1): void {
    const text = this.input.value;
    this.input.classList.remove("bad");
    if (text === "") {
      this.view.search.clearDecorations();
      this.view.term.clearSelection();
      return setText(this.count, "");
    }
    if (this.options.regex && !valid(text)) {
      this.input.classList.add("bad");
      return setText(this.count, "Invalid");
    }
    const o: ISearchOptions = { ...this.options, decorations: searchColors(this.dark()) };
    // The newest lines are where one looks first: the search runs upwards.
    if (way === 1) this.view.search.findNext(text, o);
    else this.view.search.findPrevious(text, o);
  }
}

function valid(re: string): boolean {
  try {
    new RegExp(re);
    return true;
  } catch {
    return false;
  }
}
