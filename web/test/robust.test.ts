import headless from "@xterm/headless";
import type { Terminal as BrowserTerminal } from "@xterm/xterm";
import { describe, expect, it } from "vitest";
import { keepParsing } from "../src/term/robust";

const { Terminal } = headless;

function make() {
  const term = new Terminal({ cols: 10, rows: 4, allowProposedApi: true });
  const reports: unknown[] = [];
  keepParsing(term as unknown as BrowserTerminal, (e) => reports.push(e));
  const write = (s: string) => new Promise<void>((done) => term.write(s, done));
  const screen = () => Array.from({ length: 4 }, (_, i) => term.buffer.active.getLine(i)!.translateToString(true)).join("|");
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
});
