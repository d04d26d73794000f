import { BadFrame, decode, encode, encodeJSON, json, type Frame } from "../wire/codec";
import { sentence, verdict } from "../wire/codes";
import { MAX_PAYLOAD, SUBPROTOCOL, T, type Event, type Farewell, type ServerHello } from "../wire/types";
import { Backoff } from "./backoff";

export type ConnState =
  | { kind: "connecting" }
  | { kind: "connected"; hello: ServerHello }
  | { kind: "waiting"; until: number; reason: string }
  | { kind: "offline"; until: number }
  | { kind: "refused"; reason: string }
  | { kind: "loggedout"; reason: string };

/** The part of a WebSocket that is used; tests bring their own. */
export interface Socket {
  binaryType: string;
  onopen: (() => void) | null;
  onmessage: ((e: { data: ArrayBuffer }) => void) | null;
  onclose: ((e: { code: number; reason: string }) => void) | null;
  send(data: Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
}

export interface Env {
  open(protocol: string): Socket;
  /** A browser hides why an upgrade failed; an ordinary request tells. */
  probe(): Promise<"ok" | "unauthenticated" | "unreachable">;
  online(): boolean;
  now(): number;
  key(): string | null;
  clientId: string;
  build: string;
}

/** What takes part in a connection: a channel attaches when it comes up. */
export interface Member {
  up(): void;
  down(): void;
  frame(f: Frame): void;
}

const CONNECT_TIMEOUT = 10_000;
const WAKE_TIMEOUT = 4_000;
/** A connection that held this long was a working one: the next waits are short again. */
const WORKED = 1_000;

/**
 * One WebSocket for the whole page, kept alive: it reconnects by itself until
 * it is told to stop, is refused for good, or the login has ended.
 */
export class Connection {
  private socket: Socket | null = null;
  private hello: ServerHello | null = null;
  private farewell: Farewell | null = null;
  private readonly backoff = new Backoff();
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private connectTimer: ReturnType<typeof setTimeout> | undefined;
  private pingTimer: ReturnType<typeof setInterval> | undefined;
  private wakeTimer: ReturnType<typeof setTimeout> | undefined;
  private greetedAt = 0;
  private heard = false;
  private missed = 0;
  private nextChannel = 1;
  /** null: a DETACH is on its way and frames that cross it are ignored. */
  private readonly channels = new Map<number, Member | null>();
  private readonly members = new Set<Member>();
  private current: ConnState = { kind: "loggedout", reason: "" };

  onState: (s: ConnState) => void = () => {};
  onEvent: (e: Event) => void = () => {};

  constructor(private readonly env: Env) {}

  get state(): ConnState {
    return this.current;
  }

  start(): void {
    if (this.socket) return;
    this.backoff.reset();
    this.connect();
  }

  stop(reason = ""): void {
    this.drop();
    this.set({ kind: "loggedout", reason });
  }

  /** Now rather than when the waiting time is over. */
  retry(): void {
    const k = this.current.kind;
    if (k === "waiting" || k === "offline" || k === "refused") this.start();
  }

  /** The page came back to the front or the network came back. */
  wake(): void {
    const k = this.current.kind;
    if (k === "waiting" || k === "offline") this.retry();
    if (k !== "connected" || this.wakeTimer) return;
    this.heard = false;
    this.send(encode(T.PING));
    this.wakeTimer = setTimeout(() => {
      this.wakeTimer = undefined;
      if (!this.heard) this.lost("The connection went silent.");
    }, WAKE_TIMEOUT);
  }

  join(m: Member): void {
    this.members.add(m);
    if (this.hello) m.up();
  }

  leave(m: Member): void {
    this.members.delete(m);
    for (const [n, who] of this.channels) if (who === m) this.channels.delete(n);
  }

  /** A channel number for an ATTACH. */
  allocate(m: Member): number {
    for (let tries = 0; tries < 65535; tries++) {
      const n = this.nextChannel;
      this.nextChannel = n === 65535 ? 1 : n + 1;
      if (this.channels.has(n)) continue;
      this.channels.set(n, m);
      return n;
    }
    throw new Error("no free channel");
  }

  /** DETACHED came: the number is free again. */
  free(channel: number): void {
    this.channels.delete(channel);
  }

  detach(channel: number): void {
    if (!this.hello || !this.channels.has(channel)) return;
    this.channels.set(channel, null);
    this.send(encode(T.DETACH, channel));
  }

  send(frame: Uint8Array<ArrayBuffer>): void {
    this.socket?.send(frame);
  }

  private connect(): void {
    this.drop();
    this.set({ kind: "connecting" });
    let socket: Socket;
    try {
      socket = this.env.open(SUBPROTOCOL);
    } catch (e) {
      this.set({ kind: "refused", reason: e instanceof Error ? e.message : String(e) });
      return;
    }
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.farewell = null;
    socket.onopen = () => {
      socket.send(
        encodeJSON(T.HELLO, 0, {
          min: 1,
          max: 1,
          client_id: this.env.clientId,
          capabilities: ["events"],
          build: this.env.build,
          max_frame: MAX_PAYLOAD,
          key: this.env.key() ?? undefined,
        }),
      );
    };
    socket.onmessage = (e) => this.message(socket, e.data);
    socket.onclose = (e) => {
      if (this.socket === socket) this.closed(e.code, e.reason);
    };
    this.connectTimer = setTimeout(() => this.lost("The daemon did not answer."), CONNECT_TIMEOUT);
  }

  private message(socket: Socket, data: ArrayBuffer): void {
    if (this.socket !== socket) return;
    this.heard = true;
    try {
      for (const f of decode(data)) {
        this.dispatch(f);
        if (this.socket !== socket) return;
      }
    } catch (e) {
      if (!(e instanceof BadFrame)) throw e;
      this.drop(4400, e.message);
      this.set({ kind: "refused", reason: sentence(e.message) });
    }
  }

  private dispatch(f: Frame): void {
    if (!this.hello) {
      if (f.type === T.GOODBYE) this.farewell = json<Farewell>(f);
      else if (f.type === T.HELLO) this.greeted(json<ServerHello>(f));
      else throw new BadFrame(`type ${f.type} came before HELLO`);
      return;
    }
    switch (f.type) {
      case T.PING:
        this.send(encode(T.PONG, 0, f.offset, f.payload));
        return;
      case T.PONG:
        return;
      case T.EVENT:
        this.onEvent(json<Event>(f));
        return;
      case T.GOODBYE:
        this.farewell = json<Farewell>(f);
        return;
      default:
    }
    if (f.channel === 0) throw new BadFrame(`type ${f.type} on channel 0`);
    const member = this.channels.get(f.channel);
    if (member) member.frame(f);
    else if (f.type === T.DETACHED) this.free(f.channel);
    else if (member === undefined) throw new BadFrame(`channel ${f.channel} is not attached`);
  }

  private greeted(hello: ServerHello): void {
    clearTimeout(this.connectTimer);
    this.hello = hello;
    this.greetedAt = this.env.now();
    this.missed = 0;
    this.pingTimer = setInterval(() => this.tick(), hello.ping_ms > 0 ? hello.ping_ms : 20_000);
    this.set({ kind: "connected", hello });
    for (const m of [...this.members]) m.up();
  }

  /** Three intervals without anything are death; a sleeping page misses one at most. */
  private tick(): void {
    this.missed = this.heard ? 0 : this.missed + 1;
    this.heard = false;
    if (this.missed >= 3) this.lost("The connection went silent.");
    else this.send(encode(T.PING));
  }

  private closed(code: number, reason: string): void {
    const bye = this.farewell;
    const v = bye ? verdict(bye.code, bye.reason) : verdict(code, reason);
    const greeted = this.hello !== null;
    if (v.next === "retry") {
      this.lost(v.text);
      if (!greeted) void this.ask();
      return;
    }
    this.drop();
    this.set(
      v.next === "login" ? { kind: "loggedout", reason: v.text } : { kind: "refused", reason: v.text },
    );
  }

  /** The upgrade failed: was it the login, or is nobody there? */
  private async ask(): Promise<void> {
    const answer = await this.env.probe();
    const k = this.current.kind;
    if (answer === "unauthenticated" && (k === "waiting" || k === "offline")) {
      this.stop("Log in to go on.");
    }
  }

  private lost(reason: string): void {
    const worked = this.hello !== null && this.env.now() - this.greetedAt >= WORKED;
    if (worked) this.backoff.reset();
    this.drop(1000);
    const delay = this.backoff.next();
    const until = this.env.now() + delay;
    this.set(this.env.online() ? { kind: "waiting", until, reason } : { kind: "offline", until });
    this.retryTimer = setTimeout(() => this.connect(), delay);
  }

  private drop(code?: number, reason?: string): void {
    clearTimeout(this.retryTimer);
    clearTimeout(this.connectTimer);
    clearTimeout(this.wakeTimer);
    clearInterval(this.pingTimer);
    this.wakeTimer = undefined;
    const socket = this.socket;
    this.socket = null;
    const was = this.hello;
    this.hello = null;
    this.channels.clear();
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close(code, reason?.slice(0, 100));
    }
    if (was) for (const m of [...this.members]) m.down();
  }

  private set(s: ConnState): void {
    this.current = s;
    this.onState(s);
  }
}
