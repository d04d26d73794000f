import { INPUT_WINDOW } from "../wire/types";

/**
 * Typed bytes of one session that the daemon has not acknowledged yet, counted
 * from the first byte this client ever typed there. Each goes into the
 * terminal exactly once: after a reconnect the log rewinds to what the daemon
 * says it has accepted, and nothing below that is ever sent again.
 */
export class InputLog {
  private chunks: Uint8Array[] = [];
  /** Offset of the first byte in chunks: all before it is acknowledged. */
  private base = 0;
  private sent = 0;
  private end = 0;

  get acked(): number {
    return this.base;
  }

  /** Bytes that are neither acknowledged nor on their way. */
  get waiting(): number {
    return this.end - this.sent;
  }

  get unacked(): number {
    return this.end - this.base;
  }

  append(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.chunks.push(bytes);
    this.end += bytes.length;
  }

  /** The next bytes that may be sent, at most `max`, within the window. */
  take(max: number): { offset: number; bytes: Uint8Array } | null {
    const room = INPUT_WINDOW - (this.sent - this.base);
    const n = Math.min(max, room, this.end - this.sent);
    if (n <= 0) return null;
    const offset = this.sent;
    this.sent += n;
    return { offset, bytes: this.read(offset, n) };
  }

  /** INPUT_ACK: all below `offset` is in the terminal's queue. */
  ack(offset: number): void {
    if (offset <= this.base || offset > this.sent) return;
    this.drop(offset - this.base);
  }

  /**
   * What to do with ATTACHED.input_offset. Returns how many bytes were given
   * up: the daemon does not know whether it has them, so they are not sent.
   */
  resume(accepted: number): number {
    if (accepted >= this.base && accepted <= this.end) {
      this.drop(accepted - this.base);
      this.sent = this.base;
      return 0;
    }
    const fresh = this.end === 0;
    const lost = this.end - this.base;
    this.chunks = [];
    // A page that was loaded anew goes on counting where its tab stood.
    this.base = this.sent = this.end = Math.max(0, accepted);
    return fresh ? 0 : lost;
  }

  /** Gives up what was not sent yet; what is on its way stays. */
  cancelWaiting(): number {
    const n = this.waiting;
    if (n === 0) return 0;
    const keep = this.read(this.base, this.sent - this.base);
    this.chunks = keep.length ? [keep] : [];
    this.end = this.sent;
    return n;
  }

  /** For keeping across a reload of the page. */
  save(): { base: number; bytes: Uint8Array } {
    return { base: this.base, bytes: this.read(this.base, this.end - this.base) };
  }

  restore(saved: { base: number; bytes: Uint8Array }): void {
    this.chunks = saved.bytes.length ? [saved.bytes] : [];
    this.base = this.sent = saved.base;
    this.end = saved.base + saved.bytes.length;
  }

  private read(offset: number, n: number): Uint8Array {
    let skip = offset - this.base;
    const first = this.chunks[0];
    if (first && skip + n <= first.length) return first.subarray(skip, skip + n);
    const out = new Uint8Array(n);
    let filled = 0;
    for (const c of this.chunks) {
      if (skip >= c.length) {
        skip -= c.length;
        continue;
      }
      const part = c.subarray(skip, skip + n - filled);
      skip = 0;
      out.set(part, filled);
      filled += part.length;
      if (filled === n) break;
    }
    return out;
  }

  private drop(n: number): void {
    this.base += n;
    if (this.sent < this.base) this.sent = this.base;
    while (n > 0) {
      const first = this.chunks[0]!;
      if (first.length > n) {
        this.chunks[0] = first.subarray(n);
        return;
      }
      n -= first.length;
      this.chunks.shift();
    }
  }
}
