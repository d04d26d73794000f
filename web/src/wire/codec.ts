import { FLAG_END, FLAG_OPTIONAL, HEADER, MAX_PAYLOAD, T } from "./types";

export interface Frame {
  type: number;
  flags: number;
  channel: number;
  /** 64 bits as they came; offsetOf makes a number of it. */
  offset: bigint;
  payload: Uint8Array;
}

/** What the codec refuses; the connection is closed with 4400. */
export class BadFrame extends Error {}

const known = new Set<number>(Object.values(T));
const EMPTY = new Uint8Array(0);
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

export function encode(
  type: number,
  channel = 0,
  offset: number | bigint = 0,
  payload: Uint8Array = EMPTY,
  flags = 0,
): Uint8Array<ArrayBuffer> {
  if (payload.length > MAX_PAYLOAD) throw new BadFrame(`payload of ${payload.length} bytes`);
  const out = new Uint8Array(HEADER + payload.length);
  const view = new DataView(out.buffer);
  view.setUint8(0, type);
  view.setUint8(1, flags);
  view.setUint16(2, channel);
  view.setUint32(4, payload.length);
  view.setBigUint64(8, BigInt(offset));
  out.set(payload, HEADER);
  return out;
}

export function encodeJSON(type: number, channel: number, value: unknown): Uint8Array<ArrayBuffer> {
  return encode(type, channel, 0, encoder.encode(JSON.stringify(value)));
}

/**
 * Decodes every frame of one message. Payloads are views into the message.
 * Frames of unknown type that carry OPTIONAL are left out.
 */
export function* decode(message: ArrayBuffer | Uint8Array): Generator<Frame> {
  const bytes = message instanceof Uint8Array ? message : new Uint8Array(message);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    if (bytes.length - at < HEADER) throw new BadFrame("truncated header");
    const type = view.getUint8(at);
    const flags = view.getUint8(at + 1);
    const length = view.getUint32(at + 4);
    if (flags & ~(FLAG_OPTIONAL | FLAG_END)) throw new BadFrame(`unknown flags ${flags}`);
    if (length > MAX_PAYLOAD) throw new BadFrame(`payload of ${length} bytes`);
    if (bytes.length - at - HEADER < length) throw new BadFrame("truncated payload");
    const start = at + HEADER;
    at = start + length;
    if (!known.has(type)) {
      if (flags & FLAG_OPTIONAL) continue;
      throw new BadFrame(`unknown type ${type}`);
    }
    yield {
      type,
      flags,
      channel: view.getUint16(start - HEADER + 2),
      offset: view.getBigUint64(start - 8),
      payload: bytes.subarray(start, at),
    };
  }
}

/** A number holds 53 bits: 9 petabytes of one session's output. */
export function offsetOf(frame: Frame): number {
  const n = Number(frame.offset);
  if (!Number.isSafeInteger(n)) throw new BadFrame(`offset ${frame.offset} is beyond 2^53`);
  return n;
}

export function json<V>(frame: Frame): V {
  try {
    const value: unknown = JSON.parse(decoder.decode(frame.payload));
    if (typeof value === "object" && value !== null) return value as V;
  } catch {
    // falls through to the one error
  }
  throw new BadFrame(`type ${frame.type}: the payload is not a JSON object`);
}
