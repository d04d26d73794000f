import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { BadFrame, decode, encode, encodeJSON, json, offsetOf } from "../src/wire/codec";
import { FLAG_OPTIONAL, MAX_PAYLOAD, T } from "../src/wire/types";

interface Vector {
  name: string;
  hex: string;
  type: number;
  flags: number;
  channel: number;
  offset: string | number;
  payload_hex: string;
}

const vectors = JSON.parse(
  readFileSync(new URL("../../internal/wire/testdata/vectors.json", import.meta.url), "utf8"),
) as Vector[];
const hex = (b: Uint8Array) => Buffer.from(b).toString("hex");
const unhex = (s: string) => new Uint8Array(Buffer.from(s, "hex"));
const all = (b: Uint8Array) => [...decode(b)];

describe("golden vectors", () => {
  it("name every type of this version, and no other", () => {
    const names = new Map(vectors.map((v) => [v.name, v.type]));
    for (const [name, type] of Object.entries(T)) expect(names.get(name), name).toBe(type);
  });

  it.each(vectors)("$name", (v) => {
    const known = (Object.values(T) as number[]).includes(v.type);
    const frames = all(unhex(v.hex));
    if (!known) {
      expect(v.flags & FLAG_OPTIONAL).toBe(FLAG_OPTIONAL);
      expect(frames).toEqual([]);
      return;
    }
    expect(frames).toHaveLength(1);
    const f = frames[0]!;
    expect([f.type, f.flags, f.channel, f.offset, hex(f.payload)]).toEqual([
      v.type,
      v.flags,
      v.channel,
      BigInt(v.offset),
      v.payload_hex,
    ]);
    expect(hex(encode(v.type, v.channel, BigInt(v.offset), unhex(v.payload_hex), v.flags))).toBe(v.hex);
  });
});

describe("decode", () => {
  it("takes all frames of a message, in order", () => {
    const a = encode(T.OUTPUT, 7, 5_000_000_000, new TextEncoder().encode("hallo"));
    const b = encodeJSON(T.SIZE, 7, { cols: 80 });
    const message = new Uint8Array([...a, ...b]);
    const frames = all(message);
    expect(frames.map((f) => f.type)).toEqual([T.OUTPUT, T.SIZE]);
    expect(offsetOf(frames[0]!)).toBe(5_000_000_000);
    expect(json<{ cols: number }>(frames[1]!).cols).toBe(80);
  });

  it("skips an unknown type that is optional and goes on behind it", () => {
    const message = new Uint8Array([...encode(0x7f, 0, 0, unhex("0102"), FLAG_OPTIONAL), ...encode(T.PING)]);
    expect(all(message).map((f) => f.type)).toEqual([T.PING]);
  });

  it.each([
    ["an unknown type", encode(0x7f)],
    ["an unknown flag", encode(T.PING, 0, 0, undefined, 4)],
    ["a truncated header", encode(T.PING).subarray(0, 15)],
    ["a truncated payload", encode(T.PING, 0, 0, unhex("0102")).subarray(0, 17)],
  ])("refuses %s", (_, message) => {
    expect(() => all(message)).toThrow(BadFrame);
  });

  it("refuses a length above the limit before it looks for the payload", () => {
    const m = encode(T.OUTPUT);
    new DataView(m.buffer).setUint32(4, MAX_PAYLOAD + 1);
    expect(() => all(m)).toThrow(/65537/);
    expect(() => encode(T.OUTPUT, 1, 0, new Uint8Array(MAX_PAYLOAD + 1))).toThrow(BadFrame);
  });

  it("refuses an offset that a number cannot hold, and JSON that is none", () => {
    const [f] = all(encode(T.OUTPUT, 1, 2n ** 53n));
    expect(() => offsetOf(f!)).toThrow(BadFrame);
    const [g] = all(encode(T.SIZE, 1, 0, new TextEncoder().encode("[")));
    expect(() => json(g!)).toThrow(BadFrame);
    const [h] = all(encode(T.SIZE, 1, 0, unhex("22ff22")));
    expect(() => json(h!)).toThrow(BadFrame);
  });
});
