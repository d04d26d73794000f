/**
 * Where the daemon is: the directory of the page, so that a base path behind a
 * proxy needs no configuration here.
 */
export function base(): URL {
  return new URL(".", typeof document === "undefined" ? "http://localhost/" : document.baseURI);
}

export function address(path: string): string {
  return new URL(path, base()).href;
}

export function socketAddress(): string {
  const u = new URL("v1/ws", base());
  u.protocol = u.protocol === "https:" ? "wss:" : "ws:";
  return u.href;
}

/** Two daemons may share an origin under different base paths. */
export function storageKey(name: string): string {
  return `ptyd:${base().pathname}:${name}`;
}
