/** JSON in a Storage that may be full, forbidden or edited by hand. */
export function load<V>(storage: Storage, key: string): V | null {
  try {
    const s = storage.getItem(key);
    return s === null ? null : (JSON.parse(s) as V);
  } catch {
    return null;
  }
}

export function save(storage: Storage, key: string, value: unknown): void {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    // A full or forbidden store costs convenience only.
  }
}
