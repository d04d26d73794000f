import { describe, expect, it } from "vitest";
import * as L from "../src/app/layout";
import { seeded } from "./random";

const leaf = (session: string): L.Node => ({ kind: "leaf", session });
const shape = (n: L.Node): string =>
  n.kind === "leaf" ? n.session : `(${shape(n.a)} ${n.dir === "row" ? "|" : "-"} ${shape(n.b)})`;
const show = (l: L.Layout) =>
  l.tabs.map((t) => (t.key === l.active ? "*" : "") + shape(t.root) + "@" + t.active).join(" ");

describe("layout", () => {
  it("opens beside the active tab, and only focuses what is open", () => {
    let l = L.open(L.open(L.empty, "a"), "b");
    l = L.open(L.focus(l, "a"), "c");
    expect(show(l)).toBe("a@a *c@c b@b");
    expect(show(L.open(l, "b"))).toBe("a@a c@c *b@b");
  });

  it("splits, and takes a session out of where it was", () => {
    let l = L.open(L.open(L.empty, "a"), "b");
    l = L.split(l, "a", "c", "row");
    l = L.split(l, "c", "b", "column");
    expect(show(l)).toBe("*(a | (c - b))@b");
    expect(L.allSessions(l)).toEqual(["a", "c", "b"]);
  });

  it("gives the room of a closed pane to its neighbour", () => {
    let l = L.split(L.open(L.empty, "a"), "a", "b", "row");
    l = L.split(l, "b", "c", "column");
    expect(show(L.close(l, "c"))).toBe("*(a | b)@b");
    expect(show(L.close(l, "a"))).toBe("*(b - c)@c");
    expect(show(L.close(L.close(L.close(l, "a"), "b"), "c"))).toBe("");
  });

  it("keeps keys unique when the session that named a tab moves away", () => {
    let l = L.split(L.open(L.empty, "a"), "a", "b", "row");
    l = L.open(L.close(l, "a"), "a");
    expect(new Set(l.tabs.map((t) => t.key)).size).toBe(2);
    expect(L.parse(l)).toEqual(l);
  });

  it("goes to the tab beside a closed one", () => {
    const l = ["a", "b", "c"].reduce(L.open, L.empty);
    expect(L.close(L.focus(l, "b"), "b").active).toBe("c");
    expect(L.close(l, "c").active).toBe("b");
    expect(L.close(l, "a").active).toBe("c");
  });

  it("finds the pane beside by place", () => {
    let l = L.split(L.open(L.empty, "a"), "a", "b", "row");
    l = L.split(l, "b", "c", "column");
    expect(L.neighbour(l, "up").tabs[0]!.active).toBe("b");
    expect(L.neighbour(l, "left").tabs[0]!.active).toBe("a");
    expect(L.neighbour(L.focus(l, "a"), "right").tabs[0]!.active).toBe("b");
    expect(L.neighbour(l, "down")).toBe(l);
  });

  it("resizes one split within bounds", () => {
    let l = L.split(L.open(L.empty, "a"), "a", "b", "row");
    l = L.split(l, "b", "c", "column");
    const root = L.resize(l, "a", "b", 0.99).tabs[0]!.root;
    expect(root).toMatchObject({ ratio: 0.5, b: { ratio: 0.9 } });
  });

  it("moves tabs and steps through them around the ends", () => {
    const l = ["a", "b", "c"].reduce(L.open, L.empty);
    expect(show(L.move(l, "c", "a"))).toBe("*c@c a@a b@b");
    expect(show(L.move(l, "a", null))).toBe("b@b *c@c a@a");
    expect(L.step(l, 1).active).toBe("a");
    expect(L.step(L.empty, 1)).toBe(L.empty);
  });

  it("drops sessions that are no more", () => {
    let l = L.split(L.open(L.empty, "a"), "a", "b", "row");
    l = L.open(l, "c");
    expect(show(L.prune(l, (s) => s === "b"))).toBe("*b@b");
  });

  it.each([
    null,
    [],
    { tabs: 1, active: "" },
    { tabs: [{ key: "a", active: "b", root: leaf("a") }], active: "a" },
    { tabs: [{ key: "a", active: "a", root: leaf("a") }], active: "b" },
    { tabs: [{ key: "a", active: "a", root: { kind: "split", dir: "row", ratio: 5, a: leaf("a"), b: leaf("b") } }], active: "a" },
    { tabs: [{ key: "a", active: "a", root: { kind: "split", dir: "row", ratio: 0.5, a: leaf("a"), b: leaf("a") } }], active: "a" },
  ])("refuses an unsound stored layout %#", (v) => {
    expect(L.parse(v)).toBeNull();
  });

  it("stays sound through random changes", () => {
    const rand = seeded(3);
    let l = L.empty;
    for (let i = 0; i < 1500; i++) {
      const a = "s" + rand(8);
      const b = "s" + rand(8);
      const all = L.allSessions(l);
      const ops = [
        () => L.open(l, a),
        () => L.split(l, a, b, rand(2) ? "row" : "column"),
        () => L.close(l, a),
        () => L.closeTab(l, l.tabs[rand(l.tabs.length || 1)]?.key ?? ""),
        () => L.focus(l, a),
        () => L.step(l, rand(2) ? 1 : -1),
        () => L.move(l, l.tabs[rand(l.tabs.length || 1)]?.key ?? "", rand(3) ? (l.tabs[0]?.key ?? null) : null),
        () => L.neighbour(l, (["left", "right", "up", "down"] as const)[rand(4)]!),
      ];
      const op = rand(ops.length);
      l = ops[op]!();
      if (L.parse(l) !== l) throw new Error(`unsound at step ${i}, operation ${op}: ${show(l)}`);
      if (op > 3) expect(L.allSessions(l).toSorted()).toEqual(all.toSorted());
    }
  });
});
