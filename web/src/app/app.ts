import { Channel } from "../conn/channel";
import { Connection, type ConnState } from "../conn/connection";
import { keepInput, takeInput, type Saved } from "../conn/inputkeep";
import { currentKey, textOf } from "../net/http";
import * as login from "../net/login";
import * as api from "../net/sessions";
import type { NewSession, Session } from "../net/sessions";
import { TerminalView } from "../term/view";
import type { Dims } from "../term/fitter";
import { SUBPROTOCOL } from "../wire/types";
import { socketAddress, storageKey } from "./base";
import * as L from "./layout";
import type { Layout } from "./layout";
import { beep, notify } from "./notify";
import { SessionList } from "./sessions";
import { SettingsStore } from "./settings";
import { load, save } from "./store";

export type Mark = "output" | "bell" | "exit";
export interface Notice {
  text: string;
  actions: { label: string; run: () => void }[];
}

/** What the page shows beside xterm.js's own screen, per open terminal. */
export interface PaneInfo {
  title: string;
  state: Channel["state"];
  reason: string;
  link: string | null;
  notices: Map<string, Notice>;
  flash: number;
}

export type Topic = "conn" | "list" | "layout" | "marks" | "pane" | "settings" | "user";

const PASSING_MS = 8000;

/**
 * The state of the page and what may be done with it. It knows no elements:
 * the parts of the page listen to topics and draw what they find here.
 */
export class App {
  readonly settings = new SettingsStore();
  readonly sessions = new SessionList();
  readonly conn: Connection;
  readonly views = new Map<string, TerminalView>();
  readonly panes = new Map<string, PaneInfo>();
  readonly marks = new Map<string, Mark>();
  layout: Layout = L.empty;
  user: login.Me["user"] | null = null;
  permissions: Set<string> | null = null;
  toast: (text: string, kind?: "error" | "info") => void = () => {};

  private readonly listeners = new Map<Topic, Set<(id?: string) => void>>();
  private readonly created = new Set<string>();
  private readonly told = new Set<string>();
  private keptInput: Map<string, Saved>;
  private lastDims: Dims | null = load<Dims>(localStorage, storageKey("dims"));
  private started = false;

  constructor(clientId: string, keptId: boolean, build: string) {
    this.keptInput = takeInput(sessionStorage, Date.now());
    if (!keptId) this.keptInput = new Map();
    this.conn = new Connection({
      open: () => new WebSocket(socketAddress(), SUBPROTOCOL) as never,
      probe: login.probe,
      online: () => navigator.onLine,
      now: () => Date.now(),
      key: currentKey,
      clientId,
      build,
    });
    this.conn.onState = (s) => this.connChanged(s);
    this.conn.onEvent = (e) => {
      if (e.type === "session" || e.type === "all") this.sessions.touch();
    };
    this.sessions.onChange = () => this.listChanged();
    this.sessions.onEnded = (s) => this.endedSomewhere(s);
    this.settings.listen(() => {
      for (const v of this.views.values()) v.apply(this.settings.now, this.settings.dark);
      this.tell("settings");
    });
    document.addEventListener("visibilitychange", () => {
      for (const v of this.views.values()) v.visibilityChanged();
      if (document.visibilityState === "visible") {
        this.conn.wake();
        this.clearSeen();
      }
    });
    addEventListener("online", () => this.conn.wake());
    addEventListener("pageshow", (e) => e.persisted && this.conn.wake());
    addEventListener("pagehide", () => this.keep());
    addEventListener("hashchange", () => this.followHash());
  }

  listen(topic: Topic, f: (id?: string) => void): void {
    let set = this.listeners.get(topic);
    if (!set) this.listeners.set(topic, (set = new Set()));
    set.add(f);
  }

  // Login

  /** There is a key: show what was there, and connect. */
  start(): void {
    if (!this.started) {
      this.started = true;
      this.restore();
    }
    this.sessions.start();
    this.conn.start();
    void this.whoAmI();
  }

  async logout(): Promise<void> {
    try {
      await login.logout();
    } catch {
      // The key is gone from here either way.
    }
    this.leave("");
  }

  /** The login ended elsewhere: the screens stay until somebody else logs in. */
  loggedOut(reason: string): void {
    login.forget();
    this.sessions.stop();
    this.conn.stop(reason);
  }

  private leave(reason: string): void {
    this.conn.stop(reason);
    this.sessions.clear();
    this.user = null;
    this.permissions = null;
    this.started = false;
    for (const id of [...this.views.keys()]) this.dispose(id);
    this.marks.clear();
    this.layout = L.empty;
    this.tell("layout");
    this.tell("user");
  }

  private async whoAmI(): Promise<void> {
    try {
      const me = await login.me();
      if (this.user && this.user.id !== me.user.id) {
        // Another person logged in where one's terminals were open.
        this.leave("");
        this.start();
        return;
      }
      this.user = me.user;
      this.permissions = new Set(me.permissions);
      this.tell("user");
    } catch {
      // 401 is handled for all calls; anything else shows as connection state.
    }
  }

  may(action: string): boolean {
    return this.permissions === null || this.permissions.has(action);
  }

  // Layout

  change(l: Layout): void {
    if (l === this.layout) return;
    this.layout = l;
    const open = new Set(L.allSessions(l));
    for (const id of open) this.ensureView(id);
    for (const id of [...this.views.keys()]) if (!open.has(id)) this.dispose(id);
    save(sessionStorage, storageKey("layout"), l);
    save(localStorage, storageKey("layout"), l);
    this.writeHash();
    this.tell("layout");
    this.clearSeen();
  }

  open(id: string): void {
    this.change(L.open(this.layout, id));
  }

  get activeId(): string | undefined {
    return L.activeSession(this.layout);
  }

  get active(): TerminalView | undefined {
    const id = this.activeId;
    return id === undefined ? undefined : this.views.get(id);
  }

  focusActive(): void {
    this.active?.focus();
  }

  closeView(id: string): void {
    const s = this.sessions.get(id);
    this.change(L.close(this.layout, id));
    if (s && !api.ended(s)) this.toast(`${api.titleOf(s)} goes on; open it again from the list.`);
  }

  private restore(): void {
    const wanted = this.hashSession();
    const own = L.parse(load(sessionStorage, storageKey("layout")));
    const last = L.parse(load(localStorage, storageKey("layout")));
    // A link to one session in a new tab opens that one, not a whole desk.
    let l = own ?? (last && (!wanted || L.tabOf(last, wanted)) ? last : L.empty);
    if (wanted) l = L.open(l, wanted);
    this.change(l);
  }

  private hashSession(): string | undefined {
    const m = /^#\/s\/([\w.-]+)$/.exec(location.hash);
    return m?.[1];
  }

  private writeHash(): void {
    const id = this.activeId;
    const hash = id ? `#/s/${id}` : "#/";
    if (location.hash !== hash) history.replaceState(null, "", location.pathname + location.search + hash);
  }

  private followHash(): void {
    const id = this.hashSession();
    if (!id || !this.started) return;
    this.open(id);
    // It may be newer than the list, or gone: the list says.
    if (!this.sessions.get(id)) this.sessions.touch(0);
  }

  // Sessions

  async create(n: NewSession, place: "tab" | "row" | "column" = "tab"): Promise<Session> {
    const target = this.activeId;
    const s = await api.create({ ...this.guessDims(), ...n });
    this.created.add(s.id);
    this.sessions.put(s);
    if (place !== "tab" && target) this.change(L.split(this.layout, target, s.id, place));
    else this.open(s.id);
    this.focusActive();
    return s;
  }

  /** A shell, with its refusal shown where nobody else does. */
  async shell(place: "tab" | "row" | "column" = "tab"): Promise<void> {
    await this.try(() => this.create({ shell: true }, place));
  }

  async runAgain(id: string): Promise<void> {
    await this.try(async () => {
      const again = await api.runAgain(id);
      this.created.add(again.id);
      this.sessions.put(again);
      // In the place of the ended one, which stays in the list.
      this.change(L.close(L.split(this.layout, id, again.id, "row"), id));
      this.focusActive();
    });
  }

  async rename(id: string, name: string): Promise<void> {
    this.sessions.put(await api.rename(id, name));
  }

  async end(id: string): Promise<void> {
    await this.try(async () => this.sessions.put(await api.close(id)));
  }

  async remove(id: string): Promise<void> {
    await this.try(async () => {
      await api.remove(id);
      this.change(L.close(this.layout, id));
      this.sessions.drop(id);
    });
  }

  async try<V>(f: () => Promise<V>): Promise<V | undefined> {
    try {
      return await f();
    } catch (e) {
      this.toast(textOf(e), "error");
      return undefined;
    }
  }

  label(id: string): string {
    const s = this.sessions.get(id);
    if (s?.name) return s.name;
    return this.panes.get(id)?.title || (s ? api.titleOf(s) : "…");
  }

  private guessDims(): { cols?: number; rows?: number } {
    return this.active?.proposed ?? this.lastDims ?? {};
  }

  // Terminals

  private ensureView(id: string): void {
    if (this.views.has(id)) return;
    const info: PaneInfo = { title: "", state: "idle", reason: "", link: null, notices: new Map(), flash: 0 };
    this.panes.set(id, info);
    const tell = () => this.tell("pane", id);
    const clearNotice = (n: string) => {
      if (info.notices.delete(n)) tell();
    };
    const view = new TerminalView(
      this.conn,
      id,
      this.settings.now,
      this.settings.dark,
      {
        activity: (kind) => this.activity(id, kind),
        title: (t) => {
          info.title = t;
          tell();
        },
        notice: (n, text, actions = []) => {
          const notice = { text, actions };
          info.notices.set(n, notice);
          tell();
          if (actions.length === 0) {
            setTimeout(() => info.notices.get(n) === notice && clearNotice(n), PASSING_MS);
          }
        },
        clearNotice,
        exit: () => {
          tell();
          this.sessions.touch(0);
        },
        state: (s, reason) => {
          info.state = s;
          info.reason = reason;
          this.settleGone(id);
          tell();
        },
        viewers: tell,
        layout: () => {
          if (view.visible && view.proposed) this.rememberDims(view.proposed);
          tell();
        },
        hover: (link) => {
          info.link = link;
          tell();
        },
        focused: () => this.change(L.focus(this.layout, id)),
      },
      this.created.has(id),
    );
    this.created.delete(id);
    const kept = this.keptInput.get(id);
    if (kept) view.channel.input.restore(kept);
    this.keptInput.delete(id);
    this.views.set(id, view);
  }

  private dispose(id: string): void {
    this.views.get(id)?.dispose();
    this.views.delete(id);
    this.panes.delete(id);
    if (this.marks.delete(id)) this.tell("marks");
  }

  private rememberDims(d: Dims): void {
    const { cols, rows } = d;
    if (this.lastDims?.cols === cols && this.lastDims.rows === rows) return;
    this.lastDims = { cols, rows };
    save(localStorage, storageKey("dims"), this.lastDims);
  }

  /** On the way out: what was typed and not acknowledged comes back after a reload. */
  private keep(): void {
    const all = new Map<string, Saved>();
    for (const [id, v] of this.views) all.set(id, v.channel.input.save());
    keepInput(sessionStorage, all, Date.now());
  }

  // Marks and notices

  private activity(id: string, kind: "output" | "bell" | "exit"): void {
    const seen = this.views.get(id)?.visible ?? false;
    if (kind === "bell") {
      if (this.settings.now.bell === "sound") beep();
      if (this.settings.now.bell === "visual") {
        const info = this.panes.get(id);
        if (info) info.flash++;
        this.tell("pane", id);
      }
      if (!seen) this.desktop(id, `${this.label(id)}: bell`, "A program asks for attention.");
    }
    if (!seen) this.mark(id, kind);
  }

  private endedSomewhere(s: Session): void {
    if (this.told.has(s.id)) return;
    this.told.add(s.id);
    if (this.views.get(s.id)?.visible) return;
    if (this.views.has(s.id)) this.mark(s.id, "exit");
    this.desktop(s.id, `${this.label(s.id)} ${api.endText(s)}`, api.commandOf(s));
  }

  private mark(id: string, kind: Mark): void {
    const order: Mark[] = ["output", "bell", "exit"];
    const before = this.marks.get(id);
    if (before && order.indexOf(before) >= order.indexOf(kind)) return;
    this.marks.set(id, kind);
    this.tell("marks");
  }

  private clearSeen(): void {
    if (document.visibilityState !== "visible") return;
    const tab = L.activeTab(this.layout);
    const cleared = tab ? L.sessionsOf(tab.root).filter((id) => this.marks.delete(id)) : [];
    if (cleared.length > 0) this.tell("marks");
  }

  private desktop(id: string, title: string, body: string): void {
    if (!this.settings.now.notify || document.visibilityState === "visible") return;
    notify(title, body, id, () => {
      this.open(id);
      this.focusActive();
    });
  }

  // Changes from below

  private connChanged(s: ConnState): void {
    if (s.kind === "connected") this.sessions.touch(0);
    if (s.kind === "loggedout") this.sessions.stop();
    this.tell("conn");
  }

  private listChanged(): void {
    if (this.sessions.loaded) {
      const l = L.prune(this.layout, (id) => this.sessions.get(id) !== undefined);
      if (l !== this.layout) {
        this.change(l);
        this.toast("A session that was open here is gone.");
      }
    }
    for (const id of this.views.keys()) this.settleGone(id);
    this.tell("list");
  }

  /** A session that ended with an earlier daemon has no EXIT in its stream any more. */
  private settleGone(id: string): void {
    const s = this.sessions.get(id);
    const view = this.views.get(id);
    if (!s || !view || view.exited || !api.ended(s) || this.panes.get(id)?.state !== "gone") return;
    view.exit({ code: s.exit_code, signal: s.signal, state: s.state });
  }

  private tell(topic: Topic, id?: string): void {
    for (const f of this.listeners.get(topic) ?? []) f(id);
  }
}
