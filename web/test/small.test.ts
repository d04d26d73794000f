import { describe, expect, it, vi } from "vitest";
import { age, splitCommand } from "../src/app/format";
import { defaults, fontStack, sane } from "../src/app/settings";
import { Backoff } from "../src/conn/backoff";
import { clientId } from "../src/conn/clientid";
import { keepInput, takeInput } from "../src/conn/inputkeep";
import { takeLink } from "../src/net/login";
import { commandOf, endText, titleOf, type Session } from "../src/net/sessions";
import { allowedLink } from "../src/term/links";
import { modified } from "../src/ui/keyrow";
import { verdict } from "../src/wire/codes";

class FakeStorage implements Storage {
  private readonly m = new Map<string, string>();
  get length() {
    return this.m.size;
  }
  clear = () => this.m.clear();
  getItem = (k: string) => this.m.get(k) ?? null;
  key = (i: number) => [...this.m.keys()][i] ?? null;
  removeItem = (k: string) => void this.m.delete(k);
  setItem = (k: string, v: string) => void this.m.set(k, v);
  copy(): FakeStorage {
    const s = new FakeStorage();
    for (const [k, v] of this.m) s.setItem(k, v);
    return s;
  }
}

describe("links", () => {
  it.each([
    ["https://example.org/a?b#c", "https://example.org/a?b#c"],
    ["HTTP://example.org", "http://example.org/"],
    ["mailto:a@example.org", "mailto:a@example.org"],
  ])("opens %s", (text, href) => expect(allowedLink(text)).toBe(href));

  it.each(["javascript:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vscode://x", "blob:http://x/y", " ", "//host/x", "about:blank"])(
    "opens nothing for %j",
    (text) => expect(allowedLink(text)).toBeNull(),
  );
});

describe("the login link", () => {
  const at = (hash: string) => {
    const replaced: string[] = [];
    const location = { hash, pathname: "/base/", search: "" } as Location;
    const history = { replaceState: (_: unknown, __: string, url: string) => void replaced.push(url) } as unknown as History;
    return { secret: takeLink(location, history), replaced };
  };
  it("is taken out of the address", () => {
    expect(at("#login=abc-_1")).toEqual({ secret: "abc-_1", replaced: ["/base/"] });
  });
  it("is nothing else", () => {
    expect(at("#/s/s_1")).toEqual({ secret: null, replaced: [] });
    expect(at("#login=")).toEqual({ secret: null, replaced: [] });
  });
});

describe("sessions", () => {
  it("tells how one ended, and only from what is known", () => {
    expect(endText({ state: "running", exit_code: null, signal: null })).toBe("");
    expect(endText({ state: "exited", exit_code: 7, signal: null })).toBe("exited with 7");
    expect(endText({ state: "exited", exit_code: null, signal: "SIGKILL" })).toBe("killed by SIGKILL");
    expect(endText({ state: "exited", exit_code: null, signal: "KILL" })).toBe("killed by SIGKILL");
    expect(endText({ state: "exited", exit_code: null, signal: null })).toBe("ended, status unknown");
    expect(endText({ state: "lost", exit_code: null, signal: null })).toBe("lost");
  });
  it("shows a command that a shell would read back", () => {
    const s = { name: "", id: "s_1", argv: ["/bin/sh", "-c", "echo 'a b'"] } as Session;
    expect(commandOf(s)).toBe(`/bin/sh -c 'echo '\\''a b'\\'''`);
    expect(splitCommand(commandOf(s))).toEqual(s.argv);
    expect(titleOf(s)).toBe("sh");
    expect(titleOf({ ...s, argv: null })).toBe("s_1");
  });
});

describe("splitCommand", () => {
  it.each<[string, string[] | null]>([
    ["", []],
    ["  ls  -l ", ["ls", "-l"]],
    [`bash -c "echo \\"x\\" $HOME"`, ["bash", "-c", 'echo "x" $HOME']],
    [`a'b c'd ""`, ["ab cd", ""]],
    [`a\\ b`, ["a b"]],
    [`"\\n"`, ["\\n"]],
    [`'open`, null],
    [`end\\`, null],
  ])("%j", (line, words) => expect(splitCommand(line)).toEqual(words));
});

describe("age", () => {
  it.each([
    [10, "now"],
    [60, "1 m"],
    [3500, "58 m"],
    [7300, "2 h"],
    [200_000, "2 d"],
  ])("%i s is %s", (s, text) => expect(age("2026-01-01T00:00:00.000001Z", Date.parse("2026-01-01T00:00:00Z") + s * 1000)).toBe(text));
});

describe("settings", () => {
  it("takes only what is sound from the store", () => {
    expect(sane({})).toEqual(defaults);
    expect(sane({ fontSize: "big", scrollback: -5, theme: "pink", cursorBlink: 1, fontFamily: 3 })).toEqual({ ...defaults, scrollback: 0 });
    expect(sane({ fontSize: 1000, lineHeight: Infinity }).fontSize).toBe(40);
  });
  it("makes a font list that cannot leave its place in a style sheet", () => {
    expect(fontStack({ ...defaults, fontFamily: "Fira Code" })).toMatch(/^"Fira Code", ui-monospace/);
    expect(fontStack({ ...defaults, fontFamily: "x;} body{background:url(//y)" })).not.toMatch(/[;{}()/:]/);
  });
});

describe("Backoff", () => {
  it("grows to 15 s, is shortened by half at most, and starts again", () => {
    const b = new Backoff(() => 0);
    const seen = Array.from({ length: 9 }, () => b.next());
    expect(seen).toEqual([250, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
    b.reset();
    expect(b.next()).toBe(250);
    expect(new Backoff(() => 0.999).next()).toBeGreaterThanOrEqual(125);
  });
});

describe("close codes", () => {
  it("keep the daemon's reason and say what is next", () => {
    expect(verdict(4401, "the token was revoked")).toEqual({ next: "login", text: "The token was revoked." });
    expect(verdict(4420).next).toBe("retry");
    expect(verdict(4499).next).toBe("stop");
    expect(verdict(1006)).toEqual({ next: "retry", text: "The connection was lost." });
  });
});

describe("the key row", () => {
  it.each([
    ["c", "ctrl", "\x03"],
    ["C", "ctrl", "\x03"],
    ["[", "ctrl", "\x1b"],
    [" ", "ctrl", "\0"],
    ["/", "ctrl", "\x1f"],
    ["é", "ctrl", "é"],
    ["pasted text", "ctrl", "pasted text"],
    ["b", "alt", "\x1bb"],
  ] as const)("%j with %s", (data, mod, out) => expect(modified(data, mod)).toBe(out));
});

describe("input across a reload", () => {
  it("comes back once, and not after half a minute", () => {
    const s = new FakeStorage();
    const all = new Map([
      ["a", { base: 7, bytes: new Uint8Array([0, 200, 255]) }],
      ["b", { base: 9, bytes: new Uint8Array(0) }],
    ]);
    keepInput(s, all, 1000);
    expect(takeInput(s, 2000)).toEqual(new Map([["a", { base: 7, bytes: new Uint8Array([0, 200, 255]) }]]));
    expect(takeInput(s, 2000).size).toBe(0);
    keepInput(s, all, 1000);
    expect(takeInput(s, 32_000).size).toBe(0);
  });
});

describe("the client id", () => {
  /** Locks of one browser: a name is held by one page at a time. */
  function locks() {
    const held = new Map<string, Promise<unknown>>();
    const request = async (name: string, o: { signal: AbortSignal }, f: () => Promise<void>) => {
      if (held.has(name)) await new Promise((_, reject) => o.signal.addEventListener("abort", () => reject(new Error("aborted"))));
      const p = f();
      held.set(name, p);
      await p;
    };
    return { manager: { request } as unknown as LockManager, free: () => held.clear() };
  }

  it("is kept by a reload and new in a duplicated tab", async () => {
    const l = locks();
    const tab = new FakeStorage();
    const first = await clientId({ storage: tab, locks: l.manager });
    expect(first).toEqual({ id: expect.stringMatching(/^[0-9a-f]{32}$/), kept: false });
    const duplicate = await clientId({ storage: tab.copy(), locks: l.manager });
    expect(duplicate.kept).toBe(false);
    expect(duplicate.id).not.toBe(first.id);
    l.free();
    expect(await clientId({ storage: tab, locks: l.manager })).toEqual({ id: first.id, kept: true });
  });

  it("is found out by asking where there are no locks", async () => {
    const rooms = new Map<string, Set<{ onmessage: ((e: { data: unknown }) => void) | null }>>();
    const channel = (name: string) => {
      const room = rooms.get(name) ?? new Set();
      rooms.set(name, room);
      const me = {
        onmessage: null as ((e: { data: unknown }) => void) | null,
        postMessage: (data: unknown) => room.forEach((o) => o !== me && queueMicrotask(() => o.onmessage?.({ data }))),
        close: () => void room.delete(me),
      };
      room.add(me);
      return me as unknown as BroadcastChannel;
    };
    vi.useFakeTimers();
    const run = async (storage: Storage) => {
      const p = clientId({ storage, channel });
      await vi.advanceTimersByTimeAsync(1000);
      return p;
    };
    const tab = new FakeStorage();
    const first = await run(tab);
    expect((await run(tab.copy())).id).not.toBe(first.id);
    rooms.clear();
    expect(await run(tab)).toEqual({ id: first.id, kept: true });
    // Two tabs that are restored at once: one of them keeps the id.
    rooms.clear();
    const both = [clientId({ storage: tab, channel }), clientId({ storage: tab.copy(), channel })];
    await vi.advanceTimersByTimeAsync(1000);
    const kept = (await Promise.all(both)).filter((x) => x.kept);
    expect(kept).toHaveLength(1);
    vi.useRealTimers();
  });
});
