import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Channel, type ChannelState, type Sink } from "../src/conn/channel";
import { Connection } from "../src/conn/connection";
import { encode, encodeJSON, json, offsetOf } from "../src/wire/codec";
import { FLAG_END, T, type Attach, type Attached, type Exit } from "../src/wire/types";
import { FakeDaemon, FakeSession } from "./fakeserver";
import { seeded } from "./random";

/** A terminal that parses when it is told to. */
class Screen implements Sink {
  bytes: number[] = [];
  resets = 0;
  states: ChannelState[] = [];
  lost = 0;
  waiting: number[] = [];
  skippedBytes = 0;
  sizes: string[] = [];
  exits: Exit[] = [];
  reason = "";
  pending: { offset: number; generation: number }[] = [];
  channel!: Channel;
  facts!: Attached;

  attached(a: Attached): void {
    this.facts = a;
  }
  snapshot(_: Uint8Array, offset: number, __: Attached, generation: number): void {
    this.resets++;
    this.bytes = [];
    this.pending.push({ offset, generation });
  }
  output(bytes: Uint8Array, end: number, generation: number): void {
    this.bytes.push(...bytes);
    this.pending.push({ offset: end, generation });
  }
  parse(n = Infinity): void {
    for (const p of this.pending.splice(0, n)) this.channel.parsed(p.offset, p.generation);
  }
  resized(s: { cols: number; rows: number }): void {
    this.sizes.push(`${s.cols}x${s.rows}`);
  }
  exit(e: Exit): void {
    this.exits.push(e);
  }
  viewers(): void {}
  skipped(n: number): void {
    this.skippedBytes += n;
  }
  inputLost(n: number): void {
    this.lost += n;
  }
  inputWaiting(n: number): void {
    this.waiting.push(n);
  }
  state(s: ChannelState, reason: string): void {
    this.states.push(s);
    this.reason = reason;
  }
}

let daemon: FakeDaemon;
let session: FakeSession;
let conn: Connection;
let screen: Screen;
let channel: Channel;
const bytes = (s: string) => new TextEncoder().encode(s);
const attaches = () => daemon.sockets.flatMap((s) => s.got.filter((f) => f.type === T.ATTACH).map((f) => json<Attach>(f)));
const acks = () => daemon.last.got.filter((f) => f.type === T.ACK).map(offsetOf);

function make(): void {
  screen = new Screen();
  channel = new Channel(conn, "s1", screen, () => ({ cols: 100, rows: 30, visible: true }), () => 1000);
  screen.channel = channel;
}

async function reconnect(): Promise<void> {
  daemon.last.die();
  await vi.advanceTimersByTimeAsync(20_000);
  daemon.last.open();
}

beforeEach(() => {
  vi.useFakeTimers();
  daemon = new FakeDaemon();
  session = new FakeSession();
  daemon.sessions.set("s1", session);
  conn = new Connection(daemon.env());
  conn.start();
  daemon.last.open();
  make();
});
afterEach(() => {
  channel.stop();
  conn.stop();
  vi.useRealTimers();
});

describe("attaching", () => {
  it("asks with its size and gets a snapshot, then continues by delta", async () => {
    session.write(bytes("hello "));
    channel.start();
    expect(attaches()[0]).toMatchObject({ session: "s1", cols: 100, rows: 30, visible: true, kind: "interactive", tail: 1000, input_offset: 0 });
    expect(attaches()[0]).not.toHaveProperty("epoch");
    daemon.last.pump();
    expect(screen.resets).toBe(1);
    await reconnect();
    session.write(bytes("world"));
    daemon.last.pump();
    expect(attaches()[1]).toMatchObject({ epoch: session.epoch, have_offset: 6 });
    expect(String.fromCharCode(...screen.bytes)).toBe("hello world");
    expect(screen.resets).toBe(1);
  });

  it("does not give up the old screen for a snapshot that never came whole", async () => {
    session.write(bytes("old"));
    channel.start();
    daemon.last.pump();
    session.oldest = 3;
    await reconnect();
    // Another epoch's snapshot breaks off in its middle.
    const n = 1;
    daemon.last.push(
      encodeJSON(T.RESYNC, n, { ...screen.facts, mode: "snapshot", offset: 50, skipped: 47 }),
      encode(T.SNAPSHOT, n, 0, bytes("half")),
    );
    await reconnect();
    expect(attaches().at(-1)).toMatchObject({ have_offset: 3 });
  });

  it("tells why it is gone, and tries again when asked", () => {
    daemon.sessions.clear();
    channel.start();
    expect(channel.state).toBe("gone");
    expect(screen.reason).toBe("There is no such session.");
    daemon.sessions.set("s1", session);
    channel.again();
    expect(channel.state).toBe("live");
  });

  it("comes back by itself after a detach that says so", async () => {
    channel.start();
    daemon.last.push(encodeJSON(T.DETACHED, 1, { code: 4412, reason: "too many", retry: true }));
    expect(channel.state).toBe("idle");
    await vi.advanceTimersByTimeAsync(1000);
    expect(channel.state).toBe("live");
  });

  it("ignores what crosses its DETACH, and the number is free after DETACHED", () => {
    channel.start();
    daemon.last.viewers.clear();
    const push = daemon.last.push.bind(daemon.last);
    const held: Uint8Array[][] = [];
    daemon.last.push = (...f) => void held.push(f);
    channel.stop();
    push(encode(T.OUTPUT, 1, 0, bytes("late")));
    expect(conn.state.kind).toBe("connected");
    expect(screen.bytes).toEqual([]);
    for (const f of held) push(...f);
    expect(conn.state.kind).toBe("connected");
  });

  it("refuses a gap and a repeat in the output", () => {
    session.write(bytes("abc"));
    channel.start();
    daemon.last.pump();
    daemon.last.push(encode(T.OUTPUT, 1, 5, bytes("x")));
    expect(conn.state).toMatchObject({ kind: "refused", reason: expect.stringContaining("expected 3") });
  });

  it("takes a jump with a notice and without a reset of its own", () => {
    session.write(bytes("abc"));
    channel.start();
    daemon.last.pump();
    screen.parse();
    daemon.last.push(
      encodeJSON(T.RESYNC, 1, { ...screen.facts, mode: "snapshot", offset: 1000, skipped: 997, cols: 90, rows: 20 }),
      encode(T.SNAPSHOT, 1, 0, new Uint8Array([0x18]), FLAG_END),
      encode(T.OUTPUT, 1, 1000, bytes("xyz")),
    );
    expect(screen.skippedBytes).toBe(997);
    expect(screen.sizes.at(-1)).toBe("90x20");
    expect(String.fromCharCode(...screen.bytes)).toBe("xyz");
  });
});

describe("acknowledging", () => {
  it("waits for the parser, then 50 ms or 32 KiB", async () => {
    session.write(new Uint8Array(40_000));
    channel.start();
    screen.parse();
    await vi.advanceTimersByTimeAsync(60);
    daemon.last.pump(1000);
    await vi.advanceTimersByTimeAsync(1000);
    expect(acks()).toEqual([0]);
    screen.parse();
    expect(acks()).toEqual([0]);
    await vi.advanceTimersByTimeAsync(50);
    expect(acks()).toEqual([0, 1000]);
    daemon.last.pump(39_000);
    screen.parse();
    expect(acks()).toEqual([0, 1000, 40_000]);
  });

  it("acknowledges a snapshot by the stream's offset", () => {
    session.write(new Uint8Array(50));
    session.oldest = 50;
    channel.start();
    const v = daemon.last.viewers.get(1)!;
    v.acked = 0;
    screen.parse();
    expect(acks()).toEqual([50]);
  });

  it("says nothing to a new connection about what an old one sent", async () => {
    session.write(new Uint8Array(40_000));
    channel.start();
    daemon.last.pump();
    // Another run of the session, of which less is there: the fake throws at
    // an acknowledgement of what it never sent.
    session.epoch = "00000000000000bb";
    session.output = [1, 2, 3];
    await reconnect();
    daemon.last.pump();
    screen.parse();
    await vi.advanceTimersByTimeAsync(1000);
    expect(acks()).toEqual([0, 3]);
  });
});

describe("typing", () => {
  it("sends at once, and says when the terminal takes no more", () => {
    daemon.acksInput = () => false;
    channel.start();
    expect(channel.type(bytes("ls\r"))).toBe(true);
    expect(String.fromCharCode(...session.typed)).toBe("ls\r");
    expect(screen.waiting).toEqual([]);
    channel.type(new Uint8Array(70_000));
    expect(session.typed).toHaveLength(65_536);
    expect(screen.waiting.at(-1)).toBe(70_003 - 65_536);
    daemon.last.push(encode(T.INPUT_ACK, 1, 65_536));
    expect(session.typed).toHaveLength(70_003);
    expect(screen.waiting.at(-1)).toBe(0);
  });

  it("drops with a notice what a daemon that does not know this page may have", async () => {
    channel.start();
    channel.type(bytes("abc"));
    daemon.acksInput = () => false;
    channel.type(bytes("def"));
    session.clients.clear();
    await reconnect();
    expect(screen.lost).toBe(3);
    channel.type(bytes("g"));
    expect(String.fromCharCode(...session.typed)).toBe("abcdefg");
  });

  it("keeps what is typed while there is no connection", async () => {
    channel.start();
    daemon.last.die();
    channel.type(bytes("later"));
    expect(session.typed).toEqual([]);
    await vi.advanceTimersByTimeAsync(20_000);
    daemon.last.open();
    expect(String.fromCharCode(...session.typed)).toBe("later");
  });

  it("takes nothing for a session that has ended", () => {
    session.exit = { code: 0, signal: null, state: "exited" };
    channel.start();
    daemon.last.pump();
    expect(screen.exits).toHaveLength(1);
    expect(channel.type(bytes("x"))).toBe(false);
  });
});

it("loses and repeats nothing through hundreds of broken connections", async () => {
  const rand = seeded(7);
  daemon.acksInput = () => rand(3) > 0;
  channel.start();
  const typed: number[] = [];
  let kills = 0;
  for (let i = 0; i < 6000; i++) {
    const s = daemon.last;
    switch (rand(8)) {
      case 0:
        session.write(Uint8Array.from({ length: rand(300) }, () => rand(256)));
        break;
      case 1: {
        const b = Uint8Array.from({ length: 1 + rand(20) }, () => rand(256));
        typed.push(...b);
        channel.type(b);
        break;
      }
      case 2:
      case 3:
        s.pump(1 + rand(200));
        break;
      case 4:
        screen.parse(rand(5));
        break;
      case 5:
        await vi.advanceTimersByTimeAsync(rand(80));
        break;
      case 6:
        if (conn.state.kind === "waiting") conn.retry();
        if (conn.state.kind === "connecting") daemon.last.open();
        break;
      default:
        if (rand(5) === 0 && !s.closed) {
          s.die();
          kills++;
        }
    }
  }
  conn.retry();
  if (conn.state.kind === "connecting") daemon.last.open();
  daemon.acksInput = () => true;
  for (let i = 0; i < 100 && screen.bytes.length < session.output.length; i++) {
    daemon.last.pump();
    screen.parse();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(kills).toBeGreaterThan(50);
  expect(screen.resets).toBe(1);
  expect(screen.bytes).toEqual(session.output);
  expect(session.typed).toEqual(typed);
  expect(channel.input.waiting).toBe(0);
});
