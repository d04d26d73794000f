/** The part of a terminal that the stream needs. */
export interface Writable {
  write(data: Uint8Array, parsed: () => void): void;
}

type Item =
  | { bytes: Uint8Array; end: number; generation: number }
  | { step: () => void };

/**
 * Hands output to the terminal in order. A step (a resize, an exit) runs when
 * all before it is parsed and nothing behind it: a resize is a record at a
 * place in the stream, and text wraps differently on its two sides.
 */
export class Stream {
  private readonly queue: Item[] = [];
  private writing = 0;
  private at = 0;

  constructor(
    private readonly term: Writable,
    private readonly parsed: (offset: number, generation: number) => void,
  ) {}

  /** Stream offset up to which the terminal has parsed. */
  get offset(): number {
    return this.at;
  }

  data(bytes: Uint8Array, end: number, generation: number): void {
    this.queue.push({ bytes, end, generation });
    this.pump();
  }

  step(run: () => void): void {
    this.queue.push({ step: run });
    this.pump();
  }

  private pump(): void {
    for (let item = this.queue[0]; item; item = this.queue[0]) {
      if ("step" in item) {
        if (this.writing > 0) return;
        this.queue.shift();
        item.step();
        continue;
      }
      this.queue.shift();
      const { bytes, end, generation } = item;
      this.writing++;
      this.term.write(bytes, () => {
        this.writing--;
        this.at = end;
        this.parsed(end, generation);
        if (this.writing === 0) this.pump();
      });
    }
  }
}

/**
 * Keeps a snapshot back until some of the output behind it is there, and then
 * gives both as one piece: a snapshot may be a bare reset, and a frame drawn
 * between the two would show an empty terminal.
 */
export class SnapshotHold {
  private parts: Uint8Array[] = [];
  private size = 0;
  private end = 0;
  private goal = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private holding = false;

  constructor(private readonly release: (bytes: Uint8Array, end: number) => void) {}

  get active(): boolean {
    return this.holding;
  }

  /** `behind`: bytes that are known to follow. */
  start(payload: Uint8Array, offset: number, behind: number): void {
    this.flush();
    this.holding = true;
    this.parts = [payload];
    this.size = payload.length;
    this.end = offset;
    this.goal = offset + Math.min(behind, 128 * 1024);
    this.timer = setTimeout(() => this.flush(), 150);
    if (behind <= 0) this.flush();
  }

  add(bytes: Uint8Array, end: number): void {
    this.parts.push(bytes);
    this.size += bytes.length;
    this.end = end;
    if (end >= this.goal) this.flush();
  }

  flush(): void {
    if (!this.holding) return;
    clearTimeout(this.timer);
    this.holding = false;
    const all = new Uint8Array(this.size);
    let at = 0;
    for (const p of this.parts) {
      all.set(p, at);
      at += p.length;
    }
    this.parts = [];
    this.release(all, this.end);
  }
}
