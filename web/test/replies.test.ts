import headless from "@xterm/headless";
import type { IParser, Terminal as BrowserTerminal } from "@xterm/xterm";
import { describe, expect, it } from "vitest";
import { ReplyGuard } from "../src/term/replies";
import { keepParsing } from "../src/term/robust";

const { Terminal } = headless;

function make(drop: () => boolean) {
  const term = new Terminal({ allowProposedApi: true, windowOptions: { getWinSizeChars: true } });
  const guard = new ReplyGuard(term.parser as unknown as IParser, drop);
  const sent: string[] = [];
  term.onData((d) => {
    if (!guard.swallow) sent.push(d);
  });
  const write = (s: string) => new Promise<void>((done) => term.write(s, done));
  return { term, sent, write, guard };
}

const queries: [string, string][] = [
  ["DA1", "\x1b[c"],
  ["DA1 with 0", "\x1b[0c"],
  ["DA2", "\x1b[>c"],
  ["DSR", "\x1b[5n"],
  ["CPR", "\x1b[6n"],
  ["DECXCPR", "\x1b[?6n"],
  ["DECRQM ansi", "\x1b[4$p"],
  ["DECRQM private", "\x1b[?2004$p"],
  ["DECRQSS", "\x1bP$qm\x1b\\"],
  ["DECRQSS with 8-bit ST", "\x1bP$q r\x9c"],
  ["window size", "\x1b[18t"],
  ["8-bit CSI", "\x9bc"],
];

describe("ReplyGuard", () => {
  it.each(queries)("lets the answer to %s through for the one that holds the size", async (_, q) => {
    const t = make(() => false);
    await t.write(q);
    expect(t.sent).toHaveLength(1);
  });

  it.each(queries)("swallows the answer to %s for everybody else", async (_, q) => {
    const t = make(() => true);
    await t.write(q);
    expect(t.sent).toEqual([]);
  });

  it("lets typed keys through, right behind a query that was swallowed", async () => {
    const t = make(() => true);
    await t.write("\x1b[c");
    t.term.input("x");
    expect(t.sent).toEqual(["x"]);
    await t.write("text without a question");
    t.term.input("y");
    expect(t.sent).toEqual(["x", "y"]);
  });

  it("changes its mind inside one job: history is dropped, news answered", async () => {
    let live = false;
    const t = make(() => !live);
    const done = new Promise<void>((resolve) => {
      t.term.write("\x1b[5n", () => (live = true));
      t.term.write("\x1b[6n", () => (live = false));
      t.term.write("\x1b[c", resolve);
    });
    await done;
    expect(t.sent).toEqual(["\x1b[1;1R"]);
  });

  it("leaves the state that a query sets along the way", async () => {
    const t = make(() => true);
    await t.write("\x1b[?1004h\x1b[?2004h");
    expect(t.term.modes.sendFocusMode).toBe(true);
    expect(t.term.modes.bracketedPasteMode).toBe(true);
  });

  it("knows every sequence that this xterm.js answers", async () => {
    // Each final byte with each prefix and intermediate, with several
    // parameters: whatever makes the terminal speak must be swallowed.
    const t = make(() => true);
    keepParsing(t.term as unknown as BrowserTerminal, (e) => {
      throw e;
    });
    const heard: string[] = [];
    t.term.onData((d) => heard.push(d));
    const params = ["", "0", "1", "5", "6", "14", "16", "18", "19", "21", "996", "1004", "2026", "2031"];
    let all = "";
    for (let final = 0x40; final <= 0x7e; final++) {
      for (const prefix of ["", "?", ">", "=", "<"]) {
        for (const inter of ["", " ", "!", '"', "#", "$", "'", "*", "+", ","]) {
          for (const p of params) all += `\x1b[${prefix}${p}${inter}${String.fromCharCode(final)}`;
        }
      }
      for (const inter of ["", "$", "+", "=", ">"]) {
        for (const body of ["m", "r", '"p', '"q', " q", "s", "544e"]) {
          all += `\x1bP${inter}${String.fromCharCode(final)}${body}\x1b\\`;
        }
      }
    }
    for (let n = 0; n < 2000; n++) all += `\x1b]${n};?\x07\x1b]${n};1;?\x1b\\`;
    all += "\x05\x1bZ";
    await t.write(all);
    expect(heard.length).toBeGreaterThan(30);
    expect(t.sent).toEqual([]);
  });

  it("never lets a program read or write the clipboard", async () => {
    const t = make(() => false);
    const seen: string[] = [];
    // A handler registered before the guard's would be asked after it.
    const other = new Terminal({ allowProposedApi: true });
    other.parser.registerOscHandler(52, (s) => {
      seen.push(s);
      return true;
    });
    new ReplyGuard(other.parser as unknown as IParser, () => false);
    await new Promise<void>((done) => other.write("\x1b]52;c;?\x07\x1b]52;c;aGk=\x07", done));
    await t.write("\x1b]52;c;?\x07");
    expect(seen).toEqual([]);
    expect(t.sent).toEqual([]);
  });
});
