import { describe, expect, it } from "vitest";
import { InputLog } from "../src/conn/inputlog";
import { INPUT_WINDOW } from "../src/wire/types";
import { seeded } from "./random";

const bytes = (s: string) => new TextEncoder().encode(s);
const text = (b: Uint8Array | undefined) => new TextDecoder().decode(b);

describe("InputLog", () => {
  it("hands bytes out once and in order, with their offsets", () => {
    const log = new InputLog();
    log.append(bytes("ab"));
    log.append(bytes("cd"));
    expect(log.take(3)).toEqual({ offset: 0, bytes: bytes("abc") });
    expect(log.take(3)).toEqual({ offset: 3, bytes: bytes("d") });
    expect(log.take(3)).toBeNull();
  });

  it("stops at the window and goes on with acknowledgements", () => {
    const log = new InputLog();
    log.append(new Uint8Array(INPUT_WINDOW + 10));
    expect(log.take(1e6)?.bytes.length).toBe(INPUT_WINDOW);
    expect(log.take(1e6)).toBeNull();
    expect(log.waiting).toBe(10);
    log.ack(4);
    expect(log.take(1e6)).toMatchObject({ offset: INPUT_WINDOW });
    expect(log.waiting).toBe(6);
  });

  it("sends again exactly what the daemon has not accepted", () => {
    const log = new InputLog();
    log.append(bytes("abcdef"));
    log.take(4);
    log.ack(1);
    expect(log.resume(3)).toBe(0);
    expect(log.acked).toBe(3);
    expect(text(log.take(100)?.bytes)).toBe("def");
  });

  it("sends nothing again that was accepted although the acknowledgement was lost", () => {
    const log = new InputLog();
    log.append(bytes("abc"));
    log.take(3);
    expect(log.resume(3)).toBe(0);
    expect(log.take(100)).toBeNull();
    log.append(bytes("d"));
    expect(log.take(100)).toEqual({ offset: 3, bytes: bytes("d") });
  });

  it("gives up what it has when the daemon does not know the client", () => {
    const log = new InputLog();
    log.append(bytes("rm -r"));
    log.take(2);
    expect(log.resume(-1)).toBe(5);
    expect(log.take(100)).toBeNull();
    log.append(bytes("x"));
    expect(log.take(100)).toEqual({ offset: 0, bytes: bytes("x") });
  });

  it("of a page loaded anew counts on from where its tab stood", () => {
    const log = new InputLog();
    expect(log.resume(17)).toBe(0);
    log.append(bytes("x"));
    expect(log.take(100)).toEqual({ offset: 17, bytes: bytes("x") });
  });

  it("survives a reload", () => {
    const log = new InputLog();
    log.append(bytes("abcdef"));
    log.take(4);
    log.ack(2);
    const again = new InputLog();
    again.restore(log.save());
    expect(again.resume(4)).toBe(0);
    expect(again.take(100)).toEqual({ offset: 4, bytes: bytes("ef") });
  });

  it("ignores acknowledgements of the past and of what was never sent", () => {
    const log = new InputLog();
    log.append(bytes("abcdef"));
    log.take(4);
    log.ack(5);
    expect(log.acked).toBe(0);
    log.ack(3);
    log.ack(1);
    expect(log.acked).toBe(3);
  });

  it("can give up what waits without touching what is on its way", () => {
    const log = new InputLog();
    log.append(bytes("abcdef"));
    log.take(4);
    log.ack(1);
    expect(log.cancelWaiting()).toBe(2);
    expect(log.waiting).toBe(0);
    log.append(bytes("X"));
    expect(log.take(100)).toEqual({ offset: 4, bytes: bytes("X") });
    expect(log.resume(1)).toBe(0);
    expect(text(log.take(100)?.bytes)).toBe("bcdX");
  });

  it("keeps every byte through random windows, losses and resumes", () => {
    const rand = seeded(42);
    const log = new InputLog();
    const typed: number[] = [];
    const got: number[] = [];
    let next = 0;
    for (let step = 0; step < 20_000; step++) {
      const what = rand(10);
      if (what < 4) {
        const b = Uint8Array.from({ length: rand(50) }, () => next++ & 255);
        typed.push(...b);
        log.append(b);
      } else if (what < 8) {
        const f = log.take(1 + rand(40));
        // The network may lose the frame; the daemon refuses a gap.
        if (f && rand(4) > 0 && f.offset <= got.length) got.push(...f.bytes.subarray(got.length - f.offset));
      } else if (what === 8) {
        log.ack(rand(2) ? got.length : rand(got.length + 1));
      } else {
        expect(log.resume(got.length)).toBe(0);
      }
    }
    log.resume(got.length);
    for (let f = log.take(1e6); f; f = log.take(1e6)) {
      got.push(...f.bytes);
      log.ack(got.length);
    }
    expect(got).toEqual(typed);
  });
});
