import { storageKey } from "../app/base";
import { call, currentKey, Problem, useKey } from "./http";

export interface Login {
  key: string;
  expires_at: string;
  user: { id: string; name: string; role: string };
}

export interface Me {
  user: { id: string; name: string; role: string };
  via: string;
  build: string;
  version: string;
  permissions: string[];
}

const slot = () => storageKey("key");

/** Reads the key that an earlier login left. */
export function remembered(): boolean {
  const k = stored();
  useKey(k);
  return k !== null;
}

/**
 * Another tab may have logged in anew: then this tab's key no longer fits the
 * cookie that both share, and the refusal is no reason to log out.
 */
export function adoptNewerKey(): boolean {
  const k = stored();
  if (k === null || k === currentKey()) return false;
  useKey(k);
  return true;
}

function stored(): string | null {
  try {
    return localStorage.getItem(slot());
  } catch {
    return null; // no storage: this page logs in each time
  }
}

/**
 * Takes `#login=SECRET` out of the address, the bar and the history before
 * anything else may look at it.
 */
export function takeLink(loc: Location, history: History): string | null {
  const m = /^#login=(.+)$/.exec(loc.hash);
  if (!m) return null;
  history.replaceState(null, "", loc.pathname + loc.search);
  try {
    return decodeURIComponent(m[1]!);
  } catch {
    return m[1]!;
  }
}

export async function byLink(link: string): Promise<Login> {
  return keep(await call<Login>("v1/login", { method: "POST", body: { link } }));
}

export async function byPassword(name: string, password: string): Promise<Login> {
  return keep(await call<Login>("v1/login", { method: "POST", body: { name, password } }));
}

export async function logout(): Promise<void> {
  try {
    await call<void>("v1/logout", { method: "POST" });
  } finally {
    forget();
  }
}

export function forget(): void {
  useKey(null);
  try {
    localStorage.removeItem(slot());
  } catch {
    // nothing was kept then
  }
}

export function me(): Promise<Me> {
  return call<Me>("v1/me");
}

export async function probe(): Promise<"ok" | "unauthenticated" | "unreachable"> {
  try {
    await me();
    return "ok";
  } catch (e) {
    return e instanceof Problem && e.status === 401 ? "unauthenticated" : "unreachable";
  }
}

function keep(l: Login): Login {
  useKey(l.key);
  try {
    localStorage.setItem(slot(), l.key);
  } catch {
    // The login lasts as long as this page.
  }
  return l;
}

/** Another tab logged in or out. */
export function onKeyChange(f: (loggedIn: boolean) => void): void {
  addEventListener("storage", (e) => {
    if (e.key !== slot() && e.key !== null) return;
    f(remembered());
  });
}
