import { storageKey } from "../app/base";
import { load, save } from "../app/store";

/** Typed bytes older than this are not what somebody waits for any more. */
const KEEP_MS = 30_000;

interface Kept {
  at: number;
  sessions: Record<string, { base: number; bytes: string }>;
}

export interface Saved {
  base: number;
  bytes: Uint8Array;
}

/** Unacknowledged input across a reload: the daemon drops what it has. */
export function keepInput(storage: Storage, all: Map<string, Saved>, now: number): void {
  const sessions: Kept["sessions"] = {};
  for (const [id, s] of all) {
    // A paste of many megabytes is not worth the storage it does not fit into.
    if (s.bytes.length > 0 && s.bytes.length <= 65536) {
      sessions[id] = { base: s.base, bytes: btoa(Array.from(s.bytes, (b) => String.fromCharCode(b)).join("")) };
    }
  }
  if (Object.keys(sessions).length > 0) save(storage, storageKey("input"), { at: now, sessions });
}

export function takeInput(storage: Storage, now: number): Map<string, Saved> {
  const kept = load<Kept>(storage, storageKey("input"));
  storage.removeItem(storageKey("input"));
  const out = new Map<string, Saved>();
  if (!kept || typeof kept.at !== "number" || now - kept.at > KEEP_MS) return out;
  for (const [id, s] of Object.entries(kept.sessions ?? {})) {
    try {
      out.set(id, { base: s.base, bytes: Uint8Array.from(atob(s.bytes), (c) => c.charCodeAt(0)) });
    } catch {
      // edited by hand
    }
  }
  return out;
}

