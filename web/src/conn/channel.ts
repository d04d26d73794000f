import { BadFrame, encode, encodeJSON, json, offsetOf, type Frame } from "../wire/codec";
import { verdict } from "../wire/codes";
import { FLAG_END, T, type Attach, type Attached, type Exit, type Farewell, type Size } from "../wire/types";
import type { Connection, Member } from "./connection";
import { InputLog } from "./inputlog";

export interface ViewSize {
  cols: number;
  rows: number;
  visible: boolean;
}

/** Where a channel delivers, all in the order of the stream. */
export interface Sink {
  attached(a: Attached, generation: number): void;
  /** A whole snapshot; the stream goes on at `offset`. */
  snapshot(payload: Uint8Array, offset: number, a: Attached, generation: number): void;
  output(bytes: Uint8Array, end: number, generation: number): void;
  resized(s: Size): void;
  exit(e: Exit): void;
  viewers(count: number): void;
  skipped(bytes: number): void;
  inputLost(bytes: number): void;
  /** Bytes that wait because the terminal takes no more; 0: none any more. */
  inputWaiting(bytes: number): void;
  state(s: ChannelState, reason: string): void;
}

export type ChannelState = "idle" | "attaching" | "live" | "gone";

const ACK_BYTES = 32 * 1024;
const ACK_MS = 50;
const INPUT_CHUNK = 16 * 1024;
/** More than this is no paste; it is refused as a whole. */
export const INPUT_LIMIT = 16 * 1024 * 1024;
const REATTACH_MS = 1000;

/**
 * One session as this page sees it. It outlives connections: what was handed
 * to the terminal (epoch and offset) and what was typed survive, and the next
 * ATTACH goes on from there.
 */
export class Channel implements Member {
  readonly input = new InputLog();
  private number = 0;
  private current: ChannelState = "idle";
  private epoch: string | null = null;
  /** End of what was handed to the sink under epoch. */
  private have = 0;
  private expected = 0;
  private generation = 0;
  private acked = 0;
  private parsedTo = 0;
  private ackTimer: ReturnType<typeof setTimeout> | undefined;
  private againTimer: ReturnType<typeof setTimeout> | undefined;
  private snapshot: { facts: Attached; chunks: Uint8Array[]; size: number } | null = null;
  private readOnly = false;
  private ended = false;
  private saidWaiting = false;

  constructor(
    private readonly conn: Connection,
    readonly session: string,
    private readonly sink: Sink,
    private readonly view: () => ViewSize,
    private readonly tail: () => number,
  ) {}

  get state(): ChannelState {
    return this.current;
  }

  start(): void {
    this.conn.join(this);
  }

  stop(): void {
    clearTimeout(this.ackTimer);
    clearTimeout(this.againTimer);
    if (this.number) this.conn.detach(this.number);
    this.number = 0;
    this.conn.leave(this);
    this.current = "idle";
  }

  /** After the daemon detached for good and the user wants to try again. */
  again(): void {
    if (this.current === "gone") this.conn.join(this);
  }

  type(bytes: Uint8Array): boolean {
    if (this.readOnly || this.ended || this.current === "gone") return false;
    if (this.input.unacked + bytes.length > INPUT_LIMIT) return false;
    this.input.append(bytes);
    this.pump();
    return true;
  }

  cancelWaiting(): void {
    this.input.cancelWaiting();
    this.tellWaiting();
  }

  sendView(): void {
    if (this.current === "live") this.conn.send(encodeJSON(T.VIEW, this.number, this.view()));
  }

  claim(): void {
    if (this.current === "live") this.conn.send(encode(T.CLAIM, this.number));
  }

  signal(signal: string): void {
    if (this.current === "live") this.conn.send(encodeJSON(T.SIGNAL, this.number, { signal }));
  }

  /** The terminal has parsed all below `offset` of that generation. */
  parsed(offset: number, generation: number): void {
    if (generation !== this.generation || this.current !== "live") return;
    this.parsedTo = offset;
    if (offset - this.acked >= ACK_BYTES) this.ack();
    else this.ackTimer ??= setTimeout(() => this.ack(), ACK_MS);
  }

  up(): void {
    this.attach();
  }

  down(): void {
    this.number = 0;
    this.snapshot = null;
    clearTimeout(this.ackTimer);
    clearTimeout(this.againTimer);
    this.ackTimer = undefined;
    if (this.current !== "gone") this.set("idle");
  }

  frame(f: Frame): void {
    switch (f.type) {
      case T.ATTACHED:
        return this.onAttached(json<Attached>(f));
      case T.RESYNC:
        return this.onResync(json<Attached>(f));
      case T.SNAPSHOT:
        return this.onSnapshot(f);
      case T.OUTPUT:
        return this.onOutput(f);
      case T.SIZE:
        return this.sink.resized(json<Size>(f));
      case T.EXIT:
        this.ended = true;
        return this.sink.exit(json<Exit>(f));
      case T.VIEWERS:
        return this.sink.viewers(json<{ count: number }>(f).count);
      case T.INPUT_ACK:
        this.input.ack(offsetOf(f));
        return this.pump();
      case T.DETACHED:
        return this.onDetached(json<Farewell>(f));
      default:
        throw new BadFrame(`type ${f.type} on channel ${f.channel}`);
    }
  }

  private attach(): void {
    this.number = this.conn.allocate(this);
    const request: Attach = {
      session: this.session,
      ...this.view(),
      kind: "interactive",
      input_offset: this.input.acked,
      tail: this.tail(),
    };
    if (this.epoch !== null) {
      request.epoch = this.epoch;
      request.have_offset = this.have;
    }
    this.set("attaching");
    this.conn.send(encodeJSON(T.ATTACH, this.number, request));
  }

  private onAttached(a: Attached): void {
    this.generation++;
    this.readOnly = a.read_only;
    this.ended = a.state === "exited" || a.state === "lost";
    this.expected = a.offset;
    this.acked = a.offset;
    this.parsedTo = a.offset;
    if (a.mode === "delta") {
      if (a.epoch !== this.epoch || a.offset !== this.have) {
        throw new BadFrame(`a delta from ${a.offset}, but ${this.have} is what is here`);
      }
    } else {
      this.snapshot = { facts: a, chunks: [], size: 0 };
    }
    this.set("live");
    this.sink.attached(a, this.generation);
    const lost = this.input.resume(this.ended ? -1 : a.input_offset);
    if (lost > 0 && !this.ended) this.sink.inputLost(lost);
    this.pump();
  }

  private onResync(a: Attached): void {
    this.sink.skipped(a.skipped ?? 0);
    this.sink.resized(a);
    this.expected = a.offset;
    this.snapshot = { facts: a, chunks: [], size: 0 };
  }

  private onSnapshot(f: Frame): void {
    const s = this.snapshot;
    if (!s || offsetOf(f) !== s.size) throw new BadFrame("a snapshot chunk out of order");
    s.chunks.push(f.payload);
    s.size += f.payload.length;
    if (!(f.flags & FLAG_END)) return;
    // Only now is the old screen given up: a connection that breaks inside a
    // snapshot must not leave this page with half of one.
    this.snapshot = null;
    this.epoch = s.facts.epoch;
    this.have = s.facts.offset;
    // Everything below the snapshot is acknowledged by its own offset.
    this.acked = s.facts.offset - ACK_BYTES;
    this.sink.snapshot(join(s.chunks, s.size), this.have, s.facts, this.generation);
  }

  private onOutput(f: Frame): void {
    if (this.snapshot) throw new BadFrame("output inside a snapshot");
    const offset = offsetOf(f);
    if (offset !== this.expected) throw new BadFrame(`output at ${offset}, expected ${this.expected}`);
    this.expected = this.have = offset + f.payload.length;
    this.sink.output(f.payload, this.have, this.generation);
  }

  private onDetached(why: Farewell): void {
    this.conn.free(this.number);
    this.number = 0;
    const v = verdict(why.code, why.reason);
    if (v.next === "retry") {
      this.set("idle");
      this.againTimer = setTimeout(() => this.attach(), REATTACH_MS);
      return;
    }
    this.conn.leave(this);
    this.set("gone", v.text);
  }

  private pump(): void {
    if (this.current === "live" && !this.ended) {
      for (let f = this.input.take(INPUT_CHUNK); f; f = this.input.take(INPUT_CHUNK)) {
        this.conn.send(encode(T.INPUT, this.number, f.offset, f.bytes));
      }
    }
    this.tellWaiting();
  }

  /** Bytes that wait for a connection are the connection's story, not this one. */
  private tellWaiting(): void {
    const n = this.current === "live" ? this.input.waiting : 0;
    if (n === 0 && !this.saidWaiting) return;
    this.saidWaiting = n > 0;
    this.sink.inputWaiting(n);
  }

  private ack(): void {
    clearTimeout(this.ackTimer);
    this.ackTimer = undefined;
    if (this.current !== "live" || this.parsedTo <= this.acked) return;
    this.acked = this.parsedTo;
    this.conn.send(encode(T.ACK, this.number, this.acked));
  }

  private set(s: ChannelState, reason = ""): void {
    if (s === this.current) return;
    this.current = s;
    this.sink.state(s, reason);
  }
}

function join(chunks: Uint8Array[], size: number): Uint8Array {
  if (chunks.length === 1) return chunks[0]!;
  const out = new Uint8Array(size);
  let at = 0;
  for (const c of chunks) {
    out.set(c, at);
    at += c.length;
  }
  return out;
}
