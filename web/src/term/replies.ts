import type { IDisposable, IParser } from "@xterm/xterm";

/**
 * xterm.js answers queries of programs (DA, CPR, DECRQM, colours …) through
 * the same onData as typed keys. A handler per query, which lets the built-in
 * one go on, tells the two apart: from a query to the end of the running job
 * nothing that onData brings can be typed, because the parser never yields
 * inside a job. `drop` is asked at each query.
 */
export class ReplyGuard {
  private dropping = false;
  private readonly handlers: IDisposable[] = [];

  constructor(parser: IParser, private readonly drop: () => boolean) {
    const query = (): boolean => {
      this.dropping = this.drop();
      if (this.dropping) queueMicrotask(() => (this.dropping = false));
      return false;
    };
    const asks = (params: (number | number[])[], mode: number) => params.includes(mode) && query();
    this.handlers.push(
      // DA1, DA2, DA3
      parser.registerCsiHandler({ final: "c" }, query),
      parser.registerCsiHandler({ prefix: ">", final: "c" }, query),
      parser.registerCsiHandler({ prefix: "=", final: "c" }, query),
      // DSR, CPR, DECXCPR
      parser.registerCsiHandler({ final: "n" }, query),
      parser.registerCsiHandler({ prefix: "?", final: "n" }, query),
      // DECRQM
      parser.registerCsiHandler({ intermediates: "$", final: "p" }, query),
      parser.registerCsiHandler({ prefix: "?", intermediates: "$", final: "p" }, query),
      // XTVERSION, DECREQTPARM, window reports, kitty keyboard
      parser.registerCsiHandler({ prefix: ">", final: "q" }, query),
      parser.registerCsiHandler({ final: "x" }, query),
      parser.registerCsiHandler({ final: "t" }, query),
      parser.registerCsiHandler({ prefix: "?", final: "u" }, query),
      // DECRQSS, XTGETTCAP
      parser.registerDcsHandler({ intermediates: "$", final: "q" }, query),
      parser.registerDcsHandler({ intermediates: "+", final: "q" }, query),
      // Focus reporting and colour-scheme reporting tell their state when switched on.
      parser.registerCsiHandler({ prefix: "?", final: "h" }, (p) => asks(p, 1004) || asks(p, 2031) || asks(p, 2048)),
      // Colours; 52 would read the clipboard, and is never let through.
      ...[4, 5, 10, 11, 12, 13, 14, 17, 19, 21].map((n) => parser.registerOscHandler(n, (s) => s.includes("?") && query())),
      parser.registerOscHandler(52, () => true),
    );
  }

  /** Asked in onData: is this a reply that nobody should get? */
  get swallow(): boolean {
    return this.dropping;
  }

  dispose(): void {
    for (const h of this.handlers) h.dispose();
  }
}
