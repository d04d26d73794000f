import type { Terminal } from "@xterm/xterm";

interface Params {
  params: number[];
  length: number;
}

interface Handler {
  parse(data: string | Uint8Array, promised?: boolean): unknown;
  eraseInDisplay(p: Params, respectProtect?: boolean): boolean;
  _parser: { reset(): void };
  _parseStack: { paused: boolean };
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
 * known of 6.0 is done right: "erase above" with the cursor in the last cell
 * of a screen without scrollback looks for a line behind the last one. Erasing
 * from the top to the last cell is erasing all.
 *
 * It also loses a character that is cut between two chunks behind a byte 0x80,
 * as most quotes and dashes may be (E2 80 xx). So the bytes of a character that
 * is not whole wait here for the rest.
 */
export function keepParsing(term: Terminal, report: (e: unknown) => void): void {
  const handler = (term as unknown as { _core: { _inputHandler: Handler } })._core._inputHandler;
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
    const b = term.buffer.active;
    if (params[0] !== 1 || b.cursorX + 1 < term.cols || b.cursorY + 1 < b.length) return false;
    return handler.eraseInDisplay({ params: [2], length: 1 }, respectProtect);
  };
  term.parser.registerCsiHandler({ final: "J" }, (p) => erase(p, false));
  term.parser.registerCsiHandler({ prefix: "?", final: "J" }, (p) => erase(p, true));
}
