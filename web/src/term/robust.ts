import type { Terminal } from "@xterm/xterm";

interface Params {
  params: number[];
  length: number;
}

interface Line {
  isWrapped: boolean;
}

type Counted = "scrollUp" | "scrollDown" | "insertLines" | "deleteLines" | "cursorForwardTab" | "cursorBackwardTab" | "repeatPrecedingCharacter";

interface Handler extends Record<Counted, (p: Params) => boolean> {
  parse(data: string | Uint8Array, promised?: boolean): unknown;
  eraseInLine(p: Params, respectProtect?: boolean): boolean;
  _resetBufferLine(y: number, respectProtect?: boolean): void;
  _dirtyRowTracker: { markRangeDirty(from: number, to: number): void };
  _parser: { reset(): void };
  _parseStack: { paused: boolean };
}

interface Core {
  _inputHandler: Handler;
  _bufferService: { buffer: { x: number; y: number; ybase: number; lines: { get(i: number): Line | undefined } } };
}

function join(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

/** How many bytes at the end begin a character of UTF-8 that is not whole. */
export function openCharacter(bytes: Uint8Array): number {
  for (let n = 1; n <= 3 && n <= bytes.length; n++) {
    const b = bytes[bytes.length - n]!;
    if ((b & 0xc0) === 0x80) continue;
    const need = (b & 0xe0) === 0xc0 ? 2 : (b & 0xf0) === 0xe0 ? 3 : (b & 0xf8) === 0xf0 ? 4 : 1;
    return need > n ? n : 0;
  }
  return 0;
}

/**
 * An exception inside xterm.js's parser stops its write queue for good: one
 * sequence of one program would freeze the terminal, and its acknowledgements.
 * Here it costs the rest of one chunk at most. The one such sequence that is
 * known of 6.0 is done right: "erase above" with the cursor in the last column
 * looks for the next line from the top of the scrollback, where it changes a
 * line that is not meant or finds none.
 *
 * Some sequences take as many turns as their parameter says, up to 2^31, and
 * would freeze the page. Beyond the size of the screen another turn changes
 * nothing, but for repeated text, where the server stops as well.
 *
 * It also loses a character that is cut between two chunks behind a byte 0x80,
 * as most quotes and dashes may be (E2 80 xx). So the bytes of a character that
 * is not whole wait here for the rest.
 */
export function keepParsing(term: Terminal, report: (e: unknown) => void): void {
  const core = (term as unknown as { _core: Core })._core;
  const handler = core._inputHandler;
  const parse = handler.parse.bind(handler);
  let held: Uint8Array = new Uint8Array(0);
  let current: Uint8Array = held;
  handler.parse = (data, promised) => {
    if (typeof data !== "string") {
      // A handler that waited was in the middle of the chunk, which goes on.
      if (!handler._parseStack.paused) {
        const all = held.length ? join(held, data) : data;
        const whole = all.length - openCharacter(all);
        held = all.slice(whole);
        current = all.subarray(0, whole);
      }
      data = current;
    }
    try {
      return parse(data, promised);
    } catch (e) {
      handler._parser.reset();
      report(e);
      return undefined;
    }
  };
  const erase = (params: (number | number[])[], respectProtect: boolean): boolean => {
    const b = core._bufferService.buffer;
    if (params[0] !== 1 || b.x + 1 < term.cols) return false;
    handler.eraseInLine({ params: [2], length: 1 }, respectProtect);
    for (let y = 0; y < b.y; y++) handler._resetBufferLine(y, respectProtect);
    const next = b.y + 1 < term.rows ? b.lines.get(b.ybase + b.y + 1) : undefined;
    if (next) next.isWrapped = false;
    handler._dirtyRowTracker.markRangeDirty(0, b.y);
    return true;
  };
  term.parser.registerCsiHandler({ final: "J" }, (p) => erase(p, false));
  term.parser.registerCsiHandler({ prefix: "?", final: "J" }, (p) => erase(p, true));

  const bound = (most: () => number, ...names: Counted[]) => {
    for (const name of names) {
      const f = handler[name].bind(handler);
      handler[name] = (p) => f(p.params[0]! > most() ? { params: [most()], length: 1 } : p);
    }
  };
  bound(() => term.rows + 1, "scrollUp", "scrollDown", "insertLines", "deleteLines");
  bound(() => term.cols + 1, "cursorForwardTab", "cursorBackwardTab");
  bound(() => Math.min(2 * term.rows * term.cols, 16384), "repeatPrecedingCharacter");
}
