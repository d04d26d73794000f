import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal, type ILinkHandler } from "@xterm/xterm";
import { fontStack, type Settings } from "../app/settings";
import { Channel, INPUT_LIMIT, type ChannelState, type Sink, type ViewSize } from "../conn/channel";
import type { Connection } from "../conn/connection";
import type { Attached, Exit, Size } from "../wire/types";
import { copy } from "./clipboard";
import { Fitter, type Dims } from "./fitter";
import { openLink } from "./links";
import { dark, light, searchColors } from "./palette";
import { Renderer } from "./renderer";
import { ReplyGuard } from "./replies";
import { keepParsing } from "./robust";
import { SnapshotHold, Stream } from "./stream";
import { scrollByTouch } from "./touch";

export interface ViewEvents {
  /** Output, a bell or an end that was not there before: the page may mark it. */
  activity(kind: "output" | "bell" | "exit"): void;
  title(title: string): void;
  notice(id: string, text: string, actions?: { label: string; run: () => void }[]): void;
  clearNotice(id: string): void;
  exit(e: Exit): void;
  state(s: ChannelState, reason: string): void;
  viewers(count: number): void;
  /** The size, its owner or the place changed. */
  layout(): void;
  hover(link: string | null): void;
  focused(): void;
}

const FIT_MS = 80;
const SHOW_AT_LATEST_MS = 400;
const encoder = new TextEncoder();

/** One session's terminal: xterm.js, its channel and what joins the two. */
export class TerminalView implements Sink {
  readonly host = document.createElement("div");
  readonly term: Terminal;
  readonly search = new SearchAddon({ highlightLimit: 2000 });
  readonly channel: Channel;
  readonly renderer: Renderer;
  size: Size = { cols: 80, rows: 24, owner: "", you: false };
  readOnly = false;
  exited: Exit | null = null;
  viewerCount = 0;
  truncatedFrom = 0;
  /** What a touch keyboard's Ctrl or Alt key does to the next typed character. */
  transform: ((data: string) => string) | null = null;

  private readonly fitter: Fitter;
  private readonly stream: Stream;
  private readonly hold: SnapshotHold;
  private readonly guard: ReplyGuard;
  private readonly observer: ResizeObserver;
  private readonly intersection: IntersectionObserver;
  private wanted: Dims | null = null;
  private sentView = "";
  private fitTimer: ReturnType<typeof setTimeout> | undefined;
  private searching = false;
  private shown = false;
  private intersecting = false;
  private opened = false;
  /** Not shown yet: the history runs through. */
  private settling = true;
  private hasScreen = false;
  /** All below is history: no reply, no bell, no mark. */
  private liveFrom = 0;
  /** All from here on was not seen before. */
  private newFrom = 0;
  private generation = 0;

  constructor(
    conn: Connection,
    readonly session: string,
    private settings: Settings,
    private isDark: boolean,
    private readonly on: ViewEvents,
    /** This page made the session and is the first to see it. */
    private createdHere: boolean,
  ) {
    this.host.className = "term-host";
    this.term = new Terminal({ ...this.options(), allowProposedApi: true, logLevel: "error", linkHandler: this.linkHandler() });
    keepParsing(this.term, (e) => console.warn("a sequence was not understood", e));
    const fit = new FitAddon();
    this.term.loadAddon(fit);
    this.term.loadAddon(this.search);
    this.term.loadAddon(new Unicode11Addon());
    this.term.unicode.activeVersion = "11";
    this.term.loadAddon(new WebLinksAddon((_, uri) => openLink(uri)));
    this.renderer = new Renderer(this.term);
    this.renderer.onChange = () => this.on.layout();
    this.fitter = new Fitter(this.term, fit, this.host, () => this.settings.fontSize);
    this.stream = new Stream(this.term, (offset, generation) => this.channel.parsed(offset, generation));
    this.hold = new SnapshotHold((bytes, end) => this.feed(bytes, end));
    this.guard = new ReplyGuard(this.term.parser, () => !this.mayReply());
    this.channel = new Channel(conn, session, this, () => this.reportedView(), () => this.tail());
    this.listen();
    this.observer = new ResizeObserver(() => this.scheduleFit());
    this.observer.observe(this.host);
    this.intersection = new IntersectionObserver((entries) => {
      this.intersecting = entries.at(-1)?.isIntersecting ?? false;
      this.visibilityChanged();
    });
    this.intersection.observe(this.host);
  }

  /** In the document for the first time: measure, then attach with that size. */
  open(): void {
    if (this.opened) return;
    this.opened = true;
    this.host.classList.add("settling");
    this.term.open(this.host);
    // The renderer first: it decides how wide a cell is, and so the size to
    // ask for. The observer comes a frame later.
    this.intersecting = this.host.clientWidth > 0;
    this.visibilityChanged();
    this.measure();
    this.channel.start();
  }

  dispose(): void {
    clearTimeout(this.fitTimer);
    this.observer.disconnect();
    this.intersection.disconnect();
    this.channel.stop();
    this.guard.dispose();
    this.renderer.update(false);
    this.term.dispose();
    this.host.remove();
  }

  /** Whether the pane is in the tab that is seen. */
  show(shown: boolean): void {
    this.shown = shown;
    this.visibilityChanged();
  }

  get visible(): boolean {
    return this.shown && this.intersecting && document.visibilityState === "visible";
  }

  get offset(): number {
    return this.stream.offset;
  }

  get letterboxed(): boolean {
    return this.fitter.letterboxed;
  }

  get proposed(): Dims | null {
    return this.wanted;
  }

  visibilityChanged(): void {
    this.renderer.update(this.settings.webgl && this.shown && this.intersecting && this.opened);
    if (this.shown) this.scheduleFit();
    else this.tellView();
  }

  apply(settings: Settings, isDark: boolean): void {
    this.settings = settings;
    this.isDark = isDark;
    this.term.options = this.options();
    this.visibilityChanged();
  }

  setSearching(on: boolean): void {
    this.searching = on;
    this.apply(this.settings, this.isDark);
  }

  focus(): void {
    this.term.focus();
  }

  /** Typed by a person: keys, paste, the key row. */
  type(data: string): void {
    this.input(encoder.encode(data));
  }

  paste(text: string): void {
    this.term.paste(text);
  }

  claim(): void {
    this.channel.claim();
    this.focus();
  }

  async copySelection(): Promise<boolean> {
    return copy(this.term.getSelection());
  }

  // Sink

  attached(a: Attached, generation: number): void {
    this.generation = generation;
    this.truncatedFrom = a.truncated_from;
    this.readOnly = a.read_only;
    this.term.options.disableStdin = a.read_only;
    this.liveFrom = this.createdHere && !this.hasScreen ? 0 : a.head;
    this.newFrom = a.mode === "delta" ? a.offset : this.liveFrom;
    this.createdHere = false;
    this.resized(a);
    setTimeout(() => this.settled(), SHOW_AT_LATEST_MS);
    if (a.mode === "delta" || a.head <= a.offset) this.settled();
    this.tellView();
  }

  snapshot(payload: Uint8Array, offset: number, a: Attached): void {
    this.hold.start(payload, offset, a.head - offset);
  }

  output(bytes: Uint8Array, end: number): void {
    if (this.hold.active) this.hold.add(bytes, end);
    else this.feed(bytes, end);
  }

  /** A record in the stream: text before it is wrapped for the size before. */
  resized({ cols, rows, owner, you }: Size): void {
    this.hold.flush();
    this.stream.step(() => this.setSize({ cols, rows, owner, you }));
  }

  exit(e: Exit): void {
    this.hold.flush();
    this.stream.step(() => {
      this.exited = e;
      this.settled();
      this.term.options.disableStdin = true;
      this.term.options = this.options();
      this.on.exit(e);
      this.measure();
    });
  }

  viewers(count: number): void {
    this.viewerCount = count;
    this.on.viewers(count);
  }

  skipped(bytes: number): void {
    this.on.notice("skipped", `${bytes.toLocaleString()} bytes skipped: this view fell too far behind.`);
  }

  inputLost(bytes: number): void {
    this.on.notice("lost", `${bytes.toLocaleString()} typed bytes were not sent: the daemon does not know this page any more.`);
  }

  inputWaiting(bytes: number): void {
    if (bytes === 0) return this.on.clearNotice("waiting");
    this.on.notice("waiting", `The program reads slowly: ${bytes.toLocaleString()} bytes wait to be sent.`, [
      { label: "Discard them", run: () => this.channel.cancelWaiting() },
      { label: "Interrupt", run: () => this.channel.signal("INT") },
    ]);
  }

  state(s: ChannelState, reason: string): void {
    if (s === "gone") this.settled();
    this.on.state(s, reason);
  }

  private options() {
    const s = this.settings;
    const theme = { ...(this.isDark ? dark : light) };
    // The match one stands on is a selection, and the search has the focus.
    if (this.searching) theme.selectionInactiveBackground = searchColors(this.isDark).activeMatchBackground;
    return {
      // Nothing can be typed into what has ended: no cursor says so.
      theme: this.exited ? { ...theme, cursor: "#00000000", cursorAccent: "#00000000" } : theme,
      fontSize: s.fontSize,
      fontFamily: fontStack(s),
      lineHeight: s.lineHeight,
      cursorBlink: s.cursorBlink,
      cursorStyle: s.cursorStyle,
      cursorInactiveStyle: this.exited ? ("none" as const) : ("outline" as const),
      scrollback: s.scrollback,
      screenReaderMode: s.screenReader,
      macOptionIsMeta: s.optionIsMeta,
      macOptionClickForcesSelection: true,
      rightClickSelectsWord: false,
      minimumContrastRatio: this.isDark ? 1 : 3,
      overviewRuler: { width: 14 },
      drawBoldTextInBrightColors: false,
    };
  }

  private linkHandler(): ILinkHandler {
    return {
      activate: (_, uri) => openLink(uri),
      hover: (_, uri) => this.on.hover(uri),
      leave: () => this.on.hover(null),
      allowNonHttpProtocols: true,
    };
  }

  private listen(): void {
    const t = this.term;
    t.onData((data) => {
      if (this.guard.swallow) return;
      if (this.transform) data = this.transform(data);
      this.input(encoder.encode(data));
    });
    t.onBinary((data) => this.input(Uint8Array.from(data, (c) => c.charCodeAt(0) & 255)));
    t.onBell(() => {
      if (this.live()) this.on.activity("bell");
    });
    t.onTitleChange((title) => this.on.title(title));
    t.onSelectionChange(() => {
      if (this.settings.copyOnSelect && t.hasSelection()) void copy(t.getSelection());
    });
    this.host.addEventListener("focusin", () => this.on.focused());
    scrollByTouch(this.host);
  }

  private input(bytes: Uint8Array): void {
    if (this.channel.type(bytes) || this.readOnly || this.exited) return;
    if (bytes.length > 1024) {
      this.on.notice("refused", `That was too much at once: at most ${INPUT_LIMIT >> 20} MiB can wait to be sent.`);
    }
  }

  private feed(bytes: Uint8Array, end: number): void {
    const start = end - bytes.length;
    // What the parser does with history differs from what it does with news,
    // so a piece never holds both.
    if (start < this.liveFrom && this.liveFrom < end) {
      const cut = this.liveFrom - start;
      this.write(bytes.subarray(0, cut), this.liveFrom);
      bytes = bytes.subarray(cut);
    }
    this.write(bytes, end);
  }

  private write(bytes: Uint8Array, end: number): void {
    this.hasScreen = true;
    this.stream.data(bytes, end, this.generation);
    if (this.settling && end >= this.liveFrom) this.stream.step(() => this.settled());
    if (end > this.newFrom) this.on.activity("output");
  }

  private live(): boolean {
    return this.stream.offset >= this.liveFrom;
  }

  /** Exactly one page answers a program's questions: the one that holds the size. */
  private mayReply(): boolean {
    return this.size.you && !this.readOnly && !this.exited && this.live();
  }

  private setSize(s: Size): void {
    this.size = s;
    if (this.term.cols !== s.cols || this.term.rows !== s.rows) this.term.resize(s.cols, s.rows);
    this.place();
  }

  private settled(): void {
    if (!this.settling) return;
    this.settling = false;
    this.host.classList.remove("settling");
  }

  private scheduleFit(): void {
    clearTimeout(this.fitTimer);
    // The first fit after being shown comes at once; a drag sends few.
    this.fitTimer = setTimeout(() => this.measure(), this.wanted ? FIT_MS : 0);
  }

  private measure(): void {
    if (!this.opened) return;
    const d = this.fitter.propose();
    if (d) this.wanted = d;
    if (d && this.exited && (this.term.cols !== d.cols || this.term.rows !== d.rows)) {
      // Nobody else can be disturbed: the text is wrapped for this pane.
      this.term.resize(d.cols, d.rows);
    }
    this.place();
    this.tellView();
  }

  private place(): void {
    const w = this.wanted;
    const same = !w || (w.cols === this.term.cols && w.rows === this.term.rows);
    if (same || this.size.you || this.exited) this.fitter.fill();
    else this.fitter.letterbox();
    this.on.layout();
  }

  private viewSize(): ViewSize {
    const { cols, rows } = this.wanted ?? this.size;
    return { cols, rows, visible: this.visible };
  }

  private reportedView(): ViewSize {
    const v = this.viewSize();
    this.sentView = JSON.stringify(v);
    return v;
  }

  private tellView(): void {
    if (JSON.stringify(this.viewSize()) !== this.sentView) this.channel.sendView();
  }

  /** History worth sending: what scrollback can hold of wide lines. */
  private tail(): number {
    return Math.max(256 * 1024, Math.min(8 * 1024 * 1024, this.settings.scrollback * 200));
  }
}
