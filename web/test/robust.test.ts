import headless from "@xterm/headless";
import type { Terminal as BrowserTerminal } from "@xterm/xterm";
import { describe, expect, it } from "vitest";
import { keepParsing, openCharacter } from "../src/term/robust";

const { Terminal } = headless;

function make() {
  const term = new Terminal({ cols: 10, rows: 4, allowProposedApi: true });
  const reports: unknown[] = [];
  keepParsing(term as unknown as BrowserTerminal, (e) => reports.push(e));
  const write = (s: string) => new Promise<void>((done) => term.write(s, done));
  const screen = () => Array.from({ length: 4 }, (_, i) => term.buffer.active.getLine(term.buffer.active.baseY + i)!.translateToString(true)).join("|");
  return { term, reports, write, screen };
}

describe("keepParsing", () => {
  it.each(["\x1b[1J", "\x1b[?1J"])("erases above from the last cell: %j", async (seq) => {
    const t = make();
    await t.write("\x1b[?1049h\x1b[1;1Htop\x1b[4;1H0123456789" + seq + "\x1b[2;1Hafter");
    expect(t.reports).toEqual([]);
    expect(t.screen()).toBe("|after||");
  });

  it("leaves erasing above from any other cell alone", async () => {
    const t = make();
    await t.write("\x1b[1;1Htop\x1b[2;1H0123456789\x1b[3;1Hx\x1b[2;4H\x1b[1J");
    expect(t.screen()).toBe("|    456789|x|");
  });

  it("erases above from the last column without touching the scrollback", async () => {
    const t = make();
    await t.write("x".repeat(40) + "\r\n" + "y".repeat(20) + "\x1b[2;10H\x1b[1J");
    const lines = Array.from({ length: t.term.buffer.active.length }, (_, i) => t.term.buffer.active.getLine(i)!);
    expect(t.reports).toEqual([]);
    expect(lines.map((l) => l.isWrapped)).toEqual([false, true, false, false, false, true]);
  });

  it.each(["S", "T", "L", "M", "I", "Z", "b"])("bounds the count of CSI %s", async (final) => {
    const t = make();
    const start = performance.now();
    await t.write("x\x1b[2147483647" + final + "\x1b[2J\x1b[Hdone");
    expect(t.reports).toEqual([]);
    expect(t.screen()).toBe("done|||");
    expect(performance.now() - start).toBeLessThan(20_000);
  });

  it("goes on after an exception in a handler", async () => {
    const t = make();
    t.term.parser.registerOscHandler(777, () => {
      throw new Error("boom");
    });
    await t.write("\x1b]777;x\x07");
    await t.write("still here");
    expect(t.reports).toHaveLength(1);
    expect(t.screen()).toBe("still here|||");
  });

  it("keeps characters whole wherever they are cut", async () => {
    const text = "\u2026\u2019\u{20000}\u{1f600}\u00e9|";
    const bytes = new TextEncoder().encode(text);
    for (let cut = 1; cut < bytes.length; cut++) {
      const t = make();
      for (const part of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
        await new Promise<void>((done) => t.term.write(part, done));
      }
      expect(t.screen().split("|")[0], `cut at ${cut}`).toBe(text.slice(0, -1));
    }
    const t = make();
    for (const b of bytes) await new Promise<void>((done) => t.term.write(new Uint8Array([b]), done));
    expect(t.screen().split("|")[0]).toBe(text.slice(0, -1));
  });

  it("does not wait for what is no character", () => {
    expect(openCharacter(new Uint8Array([0x61]))).toBe(0);
    expect(openCharacter(new Uint8Array([0xe2, 0x80]))).toBe(2);
    expect(openCharacter(new Uint8Array([0xe2, 0x80, 0xa6]))).toBe(0);
    expect(openCharacter(new Uint8Array([0x80, 0x80, 0x80, 0x80]))).toBe(0);
    expect(openCharacter(new Uint8Array([0xf0, 0x9f, 0x98]))).toBe(3);
    expect(openCharacter(new Uint8Array([0xff]))).toBe(0);
    expect(openCharacter(new Uint8Array(0))).toBe(0);
  });
});
