import type { Env, Socket } from "../src/conn/connection";
import { decode, encode, encodeJSON, json, offsetOf, type Frame } from "../src/wire/codec";
import { FLAG_END, T, type Attach, type Farewell } from "../src/wire/types";

/** One session of the fake daemon: an output log, and what was typed. */
export class FakeSession {
  output: number[] = [];
  oldest = 0;
  epoch = "00000000000000aa";
  typed: number[] = [];
  /** By client id: bytes accepted. */
  clients = new Map<string, number>();
  size = { cols: 80, rows: 24 };
  exit: { code: number | null; signal: string | null; state: string } | null = null;

  write(bytes: Iterable<number>): void {
    this.output.push(...bytes);
  }
}

interface Viewer {
  channel: number;
  session: FakeSession;
  sent: number;
  acked: number;
  exitSent: boolean;
}

/** The daemon's side of one connection, as strict as the real one. */
export class FakeSocket implements Socket {
  binaryType = "";
  onopen: (() => void) | null = null;
  onmessage: ((e: { data: ArrayBuffer }) => void) | null = null;
  onclose: ((e: { code: number; reason: string }) => void) | null = null;
  readonly got: Frame[] = [];
  closed = false;
  client = "";
  viewers = new Map<number, Viewer>();

  constructor(readonly daemon: FakeDaemon) {}

  open(): void {
    this.onopen?.();
  }

  close(): void {
    this.closed = true;
    this.viewers.clear();
  }

  /** The network or the daemon ends it. */
  die(code = 1006, reason = "", bye?: Farewell): void {
    if (this.closed) return;
    if (bye) this.push(encodeJSON(T.GOODBYE, 0, bye));
    this.closed = true;
    this.viewers.clear();
    this.onclose?.({ code, reason });
  }

  push(...frames: Uint8Array[]): void {
    if (this.closed) return;
    const all = new Uint8Array(frames.reduce((n, f) => n + f.length, 0));
    let at = 0;
    for (const f of frames) {
      all.set(f, at);
      at += f.length;
    }
    this.onmessage?.({ data: all.buffer });
  }

  send(data: Uint8Array<ArrayBuffer>): void {
    if (this.closed) return;
    for (const f of decode(data)) {
      this.got.push(f);
      this.handle(f);
    }
  }

  private handle(f: Frame): void {
    switch (f.type) {
      case T.HELLO:
        this.client = json<{ client_id: string }>(f).client_id;
        this.push(
          encodeJSON(T.HELLO, 0, { version: 1, build: "fake", max_frame: 65536, capabilities: ["events"], user: "u", role: "admin", ping_ms: 20000 }),
        );
        return;
      case T.ATTACH:
        return this.attach(f);
      case T.DETACH:
        this.viewers.delete(f.channel);
        return this.push(encodeJSON(T.DETACHED, f.channel, { code: 1000, reason: "", retry: false }));
      case T.PING:
        return this.push(encode(T.PONG, 0, f.offset, f.payload));
      case T.ACK: {
        const v = this.viewers.get(f.channel)!;
        const at = offsetOf(f);
        if (at > v.sent) throw new Error(`acknowledged ${at}, sent ${v.sent}`);
        v.acked = Math.max(v.acked, at);
        return;
      }
      case T.INPUT: {
        const s = this.viewers.get(f.channel)!.session;
        const have = s.clients.get(this.client)!;
        const at = offsetOf(f);
        if (at > have) throw new Error(`a gap in the input: ${at} follows ${have}`);
        const news = f.payload.subarray(have - at);
        s.typed.push(...news);
        s.clients.set(this.client, have + news.length);
        if (this.daemon.acksInput()) this.push(encode(T.INPUT_ACK, f.channel, have + news.length));
        return;
      }
      default:
    }
  }

  private attach(f: Frame): void {
    const a = json<Attach>(f);
    const s = this.daemon.sessions.get(a.session);
    if (!s) {
      return this.push(encodeJSON(T.DETACHED, f.channel, { code: 4404, reason: "there is no such session", retry: false }));
    }
    const head = s.output.length;
    const delta = a.epoch === s.epoch && a.have_offset !== undefined && a.have_offset >= s.oldest && a.have_offset <= head;
    const offset = delta ? a.have_offset! : s.oldest;
    let accepted = s.clients.get(this.client);
    if (accepted === undefined) {
      accepted = a.input_offset === 0 ? 0 : -1;
      s.clients.set(this.client, 0);
    }
    this.viewers.set(f.channel, { channel: f.channel, session: s, sent: offset, acked: offset, exitSent: false });
    this.push(
      encodeJSON(T.ATTACHED, f.channel, {
        session: a.session,
        epoch: s.epoch,
        mode: delta ? "delta" : "snapshot",
        offset,
        head,
        ...s.size,
        state: s.exit ? s.exit.state : "running",
        owner: "u",
        you: true,
        read_only: false,
        truncated_from: s.oldest,
        input_offset: accepted,
        window: 262144,
        name: "n",
      }),
      ...(delta ? [] : [encode(T.SNAPSHOT, f.channel, 0, new Uint8Array([0x1b, 0x63]), FLAG_END)]),
    );
  }

  /** Sends up to `max` bytes to each viewer, within its window. */
  pump(max = 65536): void {
    for (const v of this.viewers.values()) {
      const room = 262144 - (v.sent - v.acked);
      const n = Math.min(max, 65536, room, v.session.output.length - v.sent);
      if (n > 0) {
        const bytes = Uint8Array.from(v.session.output.slice(v.sent, v.sent + n));
        v.sent += n;
        this.push(encode(T.OUTPUT, v.channel, v.sent - n, bytes));
      }
      if (v.session.exit && !v.exitSent && v.sent === v.session.output.length) {
        v.exitSent = true;
        this.push(encodeJSON(T.EXIT, v.channel, v.session.exit));
      }
    }
  }
}

export class FakeDaemon {
  readonly sessions = new Map<string, FakeSession>();
  readonly sockets: FakeSocket[] = [];
  acksInput: () => boolean = () => true;
  probe: () => Promise<"ok" | "unauthenticated" | "unreachable"> = async () => "ok";
  online = true;

  env(clientId = "c".repeat(32)): Env {
    return {
      open: () => {
        const s = new FakeSocket(this);
        this.sockets.push(s);
        return s;
      },
      probe: () => this.probe(),
      online: () => this.online,
      now: () => Date.now(),
      key: () => "key",
      clientId,
      build: "test",
    };
  }

  get last(): FakeSocket {
    return this.sockets.at(-1)!;
  }
}
