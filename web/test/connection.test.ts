import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Connection, type ConnState } from "../src/conn/connection";
import { encode, encodeJSON, json } from "../src/wire/codec";
import { FLAG_OPTIONAL, T } from "../src/wire/types";
import { FakeDaemon } from "./fakeserver";

let daemon: FakeDaemon;
let conn: Connection;
let states: ConnState["kind"][];

beforeEach(() => {
  vi.useFakeTimers();
  daemon = new FakeDaemon();
  conn = new Connection(daemon.env());
  states = [];
  conn.onState = (s) => states.push(s.kind);
});
afterEach(() => {
  conn.stop();
  vi.useRealTimers();
});

const up = () => {
  conn.start();
  daemon.last.open();
};

describe("Connection", () => {
  it("greets with client id and key, and is connected by the daemon's HELLO", () => {
    up();
    const hello = json<Record<string, unknown>>(daemon.last.got[0]!);
    expect(hello).toMatchObject({ min: 1, max: 1, client_id: "c".repeat(32), capabilities: ["events"], key: "key" });
    expect(states).toEqual(["connecting", "connected"]);
  });

  it("comes back after a loss, soon at first and later more slowly", async () => {
    up();
    await vi.advanceTimersByTimeAsync(5000);
    daemon.last.die();
    expect(conn.state.kind).toBe("waiting");
    await vi.advanceTimersByTimeAsync(250);
    expect(daemon.sockets).toHaveLength(2);
    const attempts = (ms: number) => {
      const before = daemon.sockets.length;
      const t = setInterval(() => !daemon.last.closed && daemon.last.die(), 1);
      return vi.advanceTimersByTimeAsync(ms).then(() => {
        clearInterval(t);
        return daemon.sockets.length - before;
      });
    };
    const early = await attempts(4000);
    await attempts(30_000);
    const late = await attempts(30_000);
    expect(early).toBeGreaterThanOrEqual(3);
    expect(late).toBeGreaterThanOrEqual(1);
    expect(late).toBeLessThanOrEqual(4);
  });

  it("does not hammer a daemon that takes every connection and drops it", async () => {
    conn.start();
    const t = setInterval(() => {
      if (daemon.last.closed) return;
      daemon.last.open();
      daemon.last.die();
    }, 1);
    await vi.advanceTimersByTimeAsync(20_000);
    clearInterval(t);
    expect(daemon.sockets.length).toBeLessThan(12);
  });

  it("asks why an upgrade failed, and stops when it was the login", async () => {
    daemon.probe = async () => "unauthenticated";
    conn.start();
    daemon.last.die();
    await vi.advanceTimersByTimeAsync(0);
    expect(conn.state).toEqual({ kind: "loggedout", reason: "Log in to go on." });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(daemon.sockets).toHaveLength(1);
  });

  it.each([
    [4401, "loggedout"],
    [4400, "refused"],
    [4406, "refused"],
    [4420, "waiting"],
    [4421, "waiting"],
    [1001, "waiting"],
  ])("close code %i leads to %s", (code, kind) => {
    up();
    daemon.last.die(code);
    expect(conn.state.kind).toBe(kind);
  });

  it("believes GOODBYE where the close code was lost", () => {
    up();
    daemon.last.die(1006, "", { code: 4401, reason: "the token was revoked", retry: false });
    expect(conn.state).toEqual({ kind: "loggedout", reason: "The token was revoked." });
  });

  it("closes with 4400 on a bad frame and does not come back by itself", async () => {
    up();
    const close = vi.spyOn(daemon.last, "close");
    daemon.last.push(new Uint8Array([1, 2, 3]));
    expect(close).toHaveBeenCalledWith(4400, expect.any(String));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(daemon.sockets).toHaveLength(1);
    conn.retry();
    expect(daemon.sockets).toHaveLength(2);
  });

  it("refuses frames of channels that were never attached, but not unknown optional ones", () => {
    up();
    daemon.last.push(encode(0x7e, 5, 0, undefined, FLAG_OPTIONAL));
    expect(conn.state.kind).toBe("connected");
    daemon.last.push(encodeJSON(T.VIEWERS, 5, { count: 1 }));
    expect(conn.state.kind).toBe("refused");
  });

  it("answers PING with its payload", () => {
    up();
    daemon.last.push(encode(T.PING, 0, 7, new Uint8Array([1, 2])));
    const pong = daemon.last.got.at(-1)!;
    expect([pong.type, pong.offset, [...pong.payload]]).toEqual([T.PONG, 7n, [1, 2]]);
  });

  it("gives up a connection that says nothing for three intervals, and no other", async () => {
    up();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(daemon.sockets).toHaveLength(1);
    const silent = daemon.last;
    silent.push = () => {};
    await vi.advanceTimersByTimeAsync(59_000);
    expect(silent.closed).toBe(false);
    await vi.advanceTimersByTimeAsync(25_000);
    expect(silent.closed).toBe(true);
    expect(daemon.sockets.length).toBeGreaterThan(1);
  });

  it("gives up one that does not answer at all", async () => {
    conn.start();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(daemon.sockets[0]!.closed).toBe(true);
    expect(conn.state.kind).toBe("waiting");
  });

  it("tries at once when the page or the network wakes up", async () => {
    up();
    await vi.advanceTimersByTimeAsync(2000);
    daemon.online = false;
    daemon.last.die();
    expect(conn.state.kind).toBe("offline");
    conn.wake();
    expect(daemon.sockets).toHaveLength(2);
    daemon.last.open();
    daemon.last.push = () => {};
    conn.wake();
    await vi.advanceTimersByTimeAsync(4001);
    expect(daemon.sockets[1]!.closed).toBe(true);
  });

  it("hears nothing any more from a socket that it gave up", async () => {
    up();
    const old = daemon.last;
    const message = old.onmessage!;
    await vi.advanceTimersByTimeAsync(2000);
    conn.stop("bye");
    message({ data: new Uint8Array([9, 9]).buffer });
    expect(conn.state).toEqual({ kind: "loggedout", reason: "bye" });
  });
});
