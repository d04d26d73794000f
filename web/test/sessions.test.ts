import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SessionList } from "../src/app/sessions";
import { call, Problem, textOf, useKey, whenUnauthenticated } from "../src/net/http";
import type { Session } from "../src/net/sessions";

const session = (id: string, more: Partial<Session> = {}): Session =>
  ({ id, name: id, state: "running", exit_code: null, signal: null, created_at: "2026-01-01T00:00:00Z", ...more }) as Session;

interface Asked {
  url: URL;
  init: RequestInit;
  answer(body: unknown, status?: number): void;
  fail(): void;
}
let asked: Asked[];
let list: SessionList;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  vi.stubGlobal("fetch", (url: URL, init: RequestInit) =>
    new Promise<Response>((resolve, reject) =>
      asked.push({
        url,
        init,
        answer: (body, status = 200) => resolve(new Response(JSON.stringify(body), { status })),
        fail: () => reject(new TypeError("network")),
      }),
    ),
  );
  list = new SessionList();
});
afterEach(() => {
  list.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const answer = async (...items: Session[]) => {
  asked.at(-1)!.answer({ items, next_cursor: "" });
  await vi.advanceTimersByTimeAsync(0);
};

describe("SessionList", () => {
  it("reads once for a burst of events, and once more for one that came meanwhile", async () => {
    list.start();
    list.touch();
    list.touch();
    await answer(session("a"));
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).toHaveLength(2);
    await answer(session("a"));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toHaveLength(2);
  });

  it("follows the cursor to the end", async () => {
    list.start();
    asked[0]!.answer({ items: [session("a")], next_cursor: "c1" });
    await vi.advanceTimersByTimeAsync(0);
    expect(asked[1]!.url.searchParams.get("cursor")).toBe("c1");
    await answer(session("b"));
    expect(list.all.map((s) => s.id)).toEqual(["a", "b"]);
  });

  it("does not let an older answer undo what was done while it was on its way", async () => {
    list.start();
    await answer(session("old"));
    list.touch(0);
    await vi.advanceTimersByTimeAsync(0);
    list.put(session("new"));
    list.drop("old");
    await answer(session("old"));
    expect(list.all.map((s) => s.id)).toEqual(["new"]);
  });

  it("tells once that a session has ended, whichever way it learns it", async () => {
    const ended: string[] = [];
    list.onEnded = (s) => ended.push(s.id);
    list.start();
    await answer(session("a"), session("b"), session("c", { state: "exited" }));
    list.put(session("a", { state: "exited", exit_code: 0 }));
    list.touch(0);
    await vi.advanceTimersByTimeAsync(0);
    await answer(session("a", { state: "exited", exit_code: 0 }), session("b", { state: "lost" }), session("c", { state: "exited" }));
    expect(ended).toEqual(["a", "b"]);
  });

  it("tries again after a failure, and not after it was stopped", async () => {
    list.start();
    asked[0]!.fail();
    await vi.advanceTimersByTimeAsync(3100);
    expect(asked).toHaveLength(2);
    list.stop();
    await answer(session("a"));
    expect(list.all).toEqual([]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toHaveLength(2);
  });
});

describe("call", () => {
  it("sends the key, and turns problem+json into text for people", async () => {
    useKey("k");
    const p = call("v1/sessions", { method: "POST", body: { name: "x" } }).catch((e: unknown) => e);
    expect(asked[0]!.init.headers).toMatchObject({ "Ptyd-Key": "k", "Content-Type": "application/json" });
    asked[0]!.answer({ code: "name_taken", detail: "the name x is taken", field: "name", hint: "choose another" }, 409);
    const e = await p;
    expect(e).toBeInstanceOf(Problem);
    expect(e).toMatchObject({ status: 409, code: "name_taken", field: "name" });
    expect(textOf(e)).toBe("The name x is taken. Choose another.");
    useKey(null);
  });

  it("tells of a login that has ended, but not of a refused login", async () => {
    let told = 0;
    whenUnauthenticated(() => told++);
    const a = call("v1/sessions").catch(() => {});
    asked[0]!.answer({ code: "unauthenticated" }, 401);
    await a;
    const b = call("v1/login", { method: "POST", body: {} }).catch(() => {});
    asked[1]!.answer({ code: "unauthenticated" }, 401);
    await b;
    expect(told).toBe(1);
  });

  it("names an unreachable daemon, and survives a proxy's own error page", async () => {
    const a = call("v1/me").catch((e: unknown) => e);
    asked[0]!.fail();
    expect(await a).toMatchObject({ code: "unreachable" });
    vi.stubGlobal("fetch", async () => new Response("<html>", { status: 502, statusText: "Bad Gateway" }));
    expect(await call("v1/me").catch((e: unknown) => textOf(e))).toBe("The daemon answered 502 Bad Gateway.");
  });
});
