import { randomHex } from "../conn/clientid";
import { call } from "./http";

export interface Session {
  id: string;
  name: string;
  state: "starting" | "running" | "exited" | "lost";
  owner: string;
  owner_name: string;
  argv: string[] | null;
  cwd: string;
  labels: Record<string, string> | null;
  cols: number;
  rows: number;
  pid: number;
  exit_code: number | null;
  signal: string | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  epoch: string;
  offset: number;
  oldest_offset: number;
  viewers: number;
  error?: string;
}

export interface NewSession {
  argv?: string[];
  shell?: boolean;
  cwd?: string;
  name?: string;
  cols?: number;
  rows?: number;
}

const one = (id: string) => `v1/sessions/${encodeURIComponent(id)}`;

export async function list(signal?: AbortSignal): Promise<Session[]> {
  const all: Session[] = [];
  let cursor = "";
  do {
    const page = await call<{ items: Session[] | null; next_cursor: string }>("v1/sessions", {
      query: { limit: "500", ...(cursor ? { cursor } : {}) },
      ...(signal ? { signal } : {}),
    });
    all.push(...(page.items ?? []));
    cursor = page.next_cursor;
  } while (cursor);
  return all;
}

/** The key makes a second sending of the same click the same session. */
export function create(n: NewSession, idempotencyKey = randomHex()): Promise<Session> {
  return call<Session>("v1/sessions", {
    method: "POST",
    body: n,
    headers: { "Idempotency-Key": idempotencyKey },
  });
}

/** The daemon knows more of it than the page: its environment, its labels. */
export function runAgain(id: string, idempotencyKey = randomHex()): Promise<Session> {
  return call<Session>(one(id) + "/run-again", { method: "POST", headers: { "Idempotency-Key": idempotencyKey } });
}

export function rename(id: string, name: string): Promise<Session> {
  return call<Session>(one(id), { method: "PATCH", body: { name } });
}

export function close(id: string): Promise<Session> {
  return call<Session>(one(id) + "/close", { method: "POST", body: {} });
}

export function remove(id: string): Promise<void> {
  return call<void>(one(id), { method: "DELETE" });
}

export function ended(s: Session): boolean {
  return s.state === "exited" || s.state === "lost";
}

/** "exited with 7", "killed by SIGKILL", "lost"; "" while it lives. */
export function endText(s: { state: string; exit_code: number | null; signal: string | null }): string {
  if (s.state === "lost") return "lost";
  if (s.state !== "exited") return "";
  if (s.signal) return "killed by " + (s.signal.startsWith("SIG") ? s.signal : "SIG" + s.signal);
  if (s.exit_code === null) return "ended, status unknown";
  return `exited with ${s.exit_code}`;
}

export function commandOf(s: Session): string {
  return (s.argv ?? []).map(quote).join(" ");
}

export function titleOf(s: Session): string {
  if (s.name) return s.name;
  const program = s.argv?.[0] ?? "";
  return program.slice(program.lastIndexOf("/") + 1) || s.id;
}

function quote(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : "'" + arg.replaceAll("'", "'\\''") + "'";
}
