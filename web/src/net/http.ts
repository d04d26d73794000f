import { address } from "../app/base";
import { sentence } from "../wire/codes";

/** A refusal of the daemon (problem+json), or of the network (code "unreachable"). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly field = "",
    readonly hint = "",
  ) {
    super(message);
  }

  /** For people: what went wrong and what to do about it. */
  get text(): string {
    return [sentence(this.message), sentence(this.hint)].filter(Boolean).join(" ");
  }
}

export function textOf(e: unknown): string {
  if (e instanceof Problem) return e.text;
  return e instanceof Error ? sentence(e.message) : String(e);
}

interface ProblemBody {
  title?: string;
  code?: string;
  detail?: string;
  field?: string;
  hint?: string;
}

export interface Call {
  method?: string;
  body?: unknown;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

let key: string | null = null;
let onUnauthenticated: () => void = () => {};

/** The origin's own half of the login; the cookie is the other. */
export function useKey(k: string | null): void {
  key = k;
}

export function currentKey(): string | null {
  return key;
}

export function whenUnauthenticated(f: () => void): void {
  onUnauthenticated = f;
}

export async function call<V>(path: string, c: Call = {}): Promise<V> {
  const url = new URL(address(path));
  for (const [k, v] of Object.entries(c.query ?? {})) url.searchParams.set(k, v);
  const headers: Record<string, string> = { ...c.headers };
  if (key) headers["Ptyd-Key"] = key;
  if (c.body !== undefined) headers["Content-Type"] = "application/json";
  let res: Response;
  try {
    res = await fetch(url, {
      method: c.method ?? "GET",
      headers,
      body: c.body === undefined ? null : JSON.stringify(c.body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      referrerPolicy: "same-origin",
      ...(c.signal ? { signal: c.signal } : {}),
    });
  } catch (e) {
    if (c.signal?.aborted) throw e;
    throw new Problem(0, "unreachable", "The daemon does not answer");
  }
  if (!res.ok) {
    const p = await problem(res);
    if (p.status === 401 && path !== "v1/login") onUnauthenticated();
    throw p;
  }
  if (res.status === 204) return undefined as V;
  return (await res.json()) as V;
}

async function problem(res: Response): Promise<Problem> {
  let b: ProblemBody = {};
  try {
    b = (await res.json()) as ProblemBody;
  } catch {
    // A proxy's own page: the status has to do.
  }
  const message = b.detail || b.title || `The daemon answered ${res.status} ${res.statusText}`;
  return new Problem(res.status, b.code ?? "http_" + res.status, message, b.field, b.hint);
}
