import { ended, list, type Session } from "../net/sessions";

/** Changes come in bursts; the list is read once for all within this time. */
const GATHER_MS = 120;
const RETRY_MS = 3000;

/**
 * The list of sessions as the daemon last told it. An event says only that
 * something changed, so each one leads to the list being read again; a read
 * that an event interrupts is followed by another.
 */
export class SessionList {
  private byId = new Map<string, Session>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private reading = false;
  private again = false;
  private stopped = true;
  /** What was learnt while a read was under way, which may be older; null: removed. */
  private readonly newer = new Map<string, Session | null>();
  loaded = false;

  onChange: () => void = () => {};
  /** A session that was seen alive has ended. */
  onEnded: (s: Session) => void = () => {};
  onError: (e: unknown) => void = () => {};

  get all(): Session[] {
    return [...this.byId.values()];
  }

  get(id: string): Session | undefined {
    return this.byId.get(id);
  }

  start(): void {
    this.stopped = false;
    void this.read();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  clear(): void {
    this.stop();
    this.byId.clear();
    this.loaded = false;
    this.onChange();
  }

  /** Something changed: read the list soon. */
  touch(delay = GATHER_MS): void {
    if (this.stopped) return;
    if (this.reading) this.again = true;
    else this.timer ??= setTimeout(() => void this.read(), delay);
  }

  /** An answer of the daemon about one session, newer than the list. */
  put(s: Session): void {
    const before = this.byId.get(s.id);
    this.byId.set(s.id, s);
    this.newer.set(s.id, s);
    if (before && !ended(before) && ended(s)) this.onEnded(s);
    this.onChange();
  }

  drop(id: string): void {
    this.newer.set(id, null);
    if (this.byId.delete(id)) this.onChange();
  }

  private async read(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.reading) {
      this.again = true;
      return;
    }
    this.reading = true;
    this.again = false;
    this.newer.clear();
    let failed = false;
    try {
      const items = await list();
      if (!this.stopped) this.take(items);
    } catch (e) {
      failed = true;
      if (!this.stopped) this.onError(e);
    } finally {
      this.reading = false;
      if (failed) this.touch(RETRY_MS);
      else if (this.again) this.touch();
    }
  }

  private take(items: Session[]): void {
    const before = this.byId;
    this.byId = new Map(items.map((s) => [s.id, s]));
    for (const [id, s] of this.newer) {
      if (s) this.byId.set(id, s);
      else this.byId.delete(id);
    }
    this.loaded = true;
    for (const s of this.byId.values()) {
      const was = before.get(s.id);
      if (was && !ended(was) && ended(s)) this.onEnded(s);
    }
    this.onChange();
  }
}
