import type { Terminal } from "@xterm/xterm";

interface Params {
  params: number[];
  length: number;
}

interface Handler {
  parse(data: string | Uint8Array, promised?: boolean): unknown;
  eraseInDisplay(p: Params, respectProtect?: boolean): boolean;
  _parser: { reset(): void };
}

/**
 * An exception inside xterm.js's parser stops its write queue for good: one
 * sequence of one program would freeze the terminal, and its acknowledgements.
 * Here it costs the rest of one chunk at most. The one such sequence that is
 * known of 6.0 is done right: "erase above" with the cursor in the last cell
 * of a screen without scrollback looks for a line behind the last one. Erasing
 * from the top to the last cell is erasing all.
 */
export function keepParsing(term: Terminal, report: (e: unknown) => void): void {
  const handler = (term as unknown as { _core: { _inputHandler: Handler } })._core._inputHandler;
  const parse = handler.parse.bind(handler);
  handler.parse = (data, promised) => {
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
