/**
 * Waiting times between attempts: doubling from 250 ms to 15 s, each shortened
 * by up to half at random so that many pages do not come back in one beat.
 */
export class Backoff {
  private attempt = 0;

  constructor(private readonly random: () => number = Math.random) {}

  next(): number {
    const full = Math.min(15_000, 250 * 2 ** this.attempt);
    this.attempt = Math.min(this.attempt + 1, 10);
    return Math.round(full * (1 - this.random() / 2));
  }

  reset(): void {
    this.attempt = 0;
  }
}
