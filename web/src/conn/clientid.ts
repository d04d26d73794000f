import { storageKey } from "../app/base";

/** What the id is guarded with; absent members are those of older pages. */
export interface Guards {
  storage: Storage;
  locks?: LockManager | undefined;
  channel?: ((name: string) => BroadcastChannel) | undefined;
}

const WAIT_MS = 150;

/**
 * The id of this tab: 128 random bits, kept across reloads in sessionStorage.
 * A duplicated tab gets a copy of that storage, so whoever loads asks whether
 * the id is in use and takes a new one if it is; `kept` tells which it was.
 */
export async function clientId(g: Guards): Promise<{ id: string; kept: boolean }> {
  const key = storageKey("client");
  const stored = g.storage.getItem(key);
  if (stored && /^[0-9a-f]{32}$/.test(stored) && (await claim(g, stored))) return { id: stored, kept: true };
  const id = randomHex();
  g.storage.setItem(key, id);
  await claim(g, id);
  return { id, kept: false };
}

async function claim(g: Guards, id: string): Promise<boolean> {
  const name = storageKey("client:" + id);
  return g.locks ? claimByLock(g.locks, name) : claimByAsking(g, name);
}

/** Holds a lock until the page goes. A reload may find it held for a moment. */
function claimByLock(locks: LockManager, name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), WAIT_MS);
    locks
      .request(name, { signal: stop.signal }, () => {
        clearTimeout(timer);
        resolve(true);
        return new Promise<void>(() => {});
      })
      .catch(() => resolve(false));
  });
}

/** On plain http there are no locks: ask the other pages, and answer them. */
function claimByAsking(g: Guards, name: string): Promise<boolean> {
  if (!g.channel) return Promise.resolve(true);
  const channel = g.channel(name);
  const me = randomHex();
  return new Promise((resolve) => {
    let mine = false;
    const lose = () => {
      clearTimeout(timer);
      channel.close();
      resolve(false);
    };
    channel.onmessage = (e: MessageEvent<{ ask?: string; held?: boolean }>) => {
      if (mine) {
        if (e.data.ask) channel.postMessage({ held: true });
      } else if (e.data.held) {
        lose();
      } else if (e.data.ask && e.data.ask < me) {
        // Both ask at once: the lower one wins.
        lose();
      } else if (e.data.ask) {
        channel.postMessage({ ask: me });
      }
    };
    const timer = setTimeout(() => {
      mine = true;
      resolve(true);
    }, WAIT_MS);
    channel.postMessage({ ask: me });
  });
}

export function randomHex(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}
