import headless from "@xterm/headless";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SnapshotHold, Stream } from "../src/term/stream";

const { Terminal } = headless;
const bytes = (s: string) => new TextEncoder().encode(s);
const text = (b: Uint8Array) => new TextDecoder().decode(b);

describe("Stream", () => {
  it("applies a size between the output before and behind it", async () => {
    const term = new Terminal({ cols: 10, rows: 5, allowProposedApi: true });
    const parsed: number[] = [];
    const lines: string[][] = [];
    const look = () => lines.push([0, 1].map((i) => term.buffer.active.getLine(i)!.translateToString(true)));
    const stream = new Stream(term, (o) => parsed.push(o));
    await new Promise<void>((done) => {
      stream.data(bytes("0123456789AB"), 12, 1);
      stream.step(look);
      stream.step(() => term.resize(20, 5));
      stream.data(bytes("\x1b[2J\x1b[H0123456789AB"), 31, 1);
      stream.step(look);
      stream.step(done);
    });
    expect(parsed).toEqual([12, 31]);
    expect(stream.offset).toBe(31);
    expect(lines).toEqual([
      ["0123456789", "AB"],
      ["0123456789AB", ""],
    ]);
  });

  it("gives way to nothing behind a step before the step ran", () => {
    const written: { data: Uint8Array; done: () => void }[] = [];
    const order: string[] = [];
    const stream = new Stream({ write: (data, done) => written.push({ data, done }) }, () => {});
    stream.data(bytes("a"), 1, 1);
    stream.data(bytes("b"), 2, 1);
    stream.step(() => order.push("step"));
    stream.data(bytes("c"), 3, 1);
    expect(written.map((w) => text(w.data))).toEqual(["a", "b"]);
    written[0]!.done();
    expect(order).toEqual([]);
    written[1]!.done();
    expect(order).toEqual(["step"]);
    expect(written.map((w) => text(w.data))).toEqual(["a", "b", "c"]);
  });
});

describe("SnapshotHold", () => {
  let out: [string, number][];
  let hold: SnapshotHold;
  beforeEach(() => {
    vi.useFakeTimers();
    out = [];
    hold = new SnapshotHold((b, end) => out.push([text(b), end]));
  });
  afterEach(() => void vi.useRealTimers());

  it("gives the reset and what follows as one piece", () => {
    hold.start(bytes("R"), 100, 6);
    hold.add(bytes("abc"), 103);
    expect(out).toEqual([]);
    hold.add(bytes("def"), 106);
    expect(out).toEqual([["Rabcdef", 106]]);
    expect(hold.active).toBe(false);
  });

  it("waits for nothing where nothing follows, and not for long where it does not come", () => {
    hold.start(bytes("R"), 100, 0);
    expect(out).toEqual([["R", 100]]);
    hold.start(bytes("S"), 200, 50);
    hold.add(bytes("x"), 201);
    vi.advanceTimersByTime(150);
    expect(out[1]).toEqual(["Sx", 201]);
  });

  it("loses nothing when a second snapshot comes inside the first", () => {
    hold.start(bytes("R"), 0, 50);
    hold.add(bytes("x"), 1);
    hold.start(bytes("S"), 10, 0);
    expect(out).toEqual([
      ["Rx", 1],
      ["S", 10],
    ]);
  });
});
