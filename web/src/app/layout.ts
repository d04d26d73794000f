/**
 * Tabs of split panes, as a value: every change returns a new layout. A session
 * is in at most one pane.
 */
export type Node =
  | { kind: "leaf"; session: string }
  | { kind: "split"; dir: "row" | "column"; ratio: number; a: Node; b: Node };

export interface Tab {
  key: string;
  root: Node;
  /** The session whose pane has the focus. */
  active: string;
}

export interface Layout {
  tabs: Tab[];
  /** key of the tab that is seen; "" without tabs */
  active: string;
}

export const empty: Layout = { tabs: [], active: "" };

export function sessionsOf(n: Node): string[] {
  return n.kind === "leaf" ? [n.session] : [...sessionsOf(n.a), ...sessionsOf(n.b)];
}

export function allSessions(l: Layout): string[] {
  return l.tabs.flatMap((t) => sessionsOf(t.root));
}

export function activeTab(l: Layout): Tab | undefined {
  return l.tabs.find((t) => t.key === l.active);
}

export function activeSession(l: Layout): string | undefined {
  return activeTab(l)?.active;
}

export function tabOf(l: Layout, session: string): Tab | undefined {
  return l.tabs.find((t) => sessionsOf(t.root).includes(session));
}

/** Focuses the session's pane, or opens a tab behind the active one. */
export function open(l: Layout, session: string): Layout {
  const there = tabOf(l, session);
  if (there) return focus(l, session);
  const tab: Tab = { key: session, root: { kind: "leaf", session }, active: session };
  const at = l.tabs.findIndex((t) => t.key === l.active) + 1 || l.tabs.length;
  return { tabs: l.tabs.toSpliced(at, 0, tab), active: tab.key };
}

export function focus(l: Layout, session: string): Layout {
  const tab = tabOf(l, session);
  if (!tab) return l;
  if (l.active === tab.key && tab.active === session) return l;
  return {
    tabs: l.tabs.map((t) => (t === tab ? { ...t, active: session } : t)),
    active: tab.key,
  };
}

export function focusTab(l: Layout, key: string): Layout {
  return l.tabs.some((t) => t.key === key) ? { ...l, active: key } : l;
}

/** Puts `session` right of or below `target`, taking it out of where it was. */
export function split(l: Layout, target: string, session: string, dir: "row" | "column"): Layout {
  if (target === session || !tabOf(l, target)) return open(l, session);
  const without = close(l, session);
  const tab = tabOf(without, target)!;
  const root = replace(tab.root, target, (leaf) => ({
    kind: "split",
    dir,
    ratio: 0.5,
    a: leaf,
    b: { kind: "leaf", session },
  }));
  return {
    tabs: without.tabs.map((t) => (t === tab ? { ...t, root, active: session } : t)),
    active: tab.key,
  };
}

/** Takes the session's pane away; its neighbour gets the room. */
export function close(l: Layout, session: string): Layout {
  const tab = tabOf(l, session);
  if (!tab) return l;
  const root = takeOut(tab.root, session);
  if (root) {
    const left = sessionsOf(root);
    const active = tab.active === session ? left[Math.max(0, sessionsOf(tab.root).indexOf(session) - 1)]! : tab.active;
    // The key names the tab's first session, which may be the one that goes.
    const key = tab.key === session ? left[0]! : tab.key;
    return {
      tabs: l.tabs.map((t) => (t === tab ? { key, root, active } : t)),
      active: l.active === tab.key ? key : l.active,
    };
  }
  return closeTab(l, tab.key);
}

function replace(n: Node, session: string, by: (leaf: Node) => Node): Node {
  if (n.kind === "leaf") return n.session === session ? by(n) : n;
  return { ...n, a: replace(n.a, session, by), b: replace(n.b, session, by) };
}

function takeOut(n: Node, session: string): Node | null {
  if (n.kind === "leaf") return n.session === session ? null : n;
  const a = takeOut(n.a, session);
  const b = takeOut(n.b, session);
  return a && b ? { ...n, a, b } : (a ?? b);
}

export function closeTab(l: Layout, key: string): Layout {
  const at = l.tabs.findIndex((t) => t.key === key);
  if (at < 0) return l;
  const tabs = l.tabs.toSpliced(at, 1);
  const next = tabs[Math.min(at, tabs.length - 1)]?.key ?? "";
  return { tabs, active: l.active === key ? next : l.active };
}

/** `path` leads from the root to the split: "a" and "b" at each level. */
export function resize(l: Layout, key: string, path: string, ratio: number): Layout {
  const r = Math.min(0.9, Math.max(0.1, ratio));
  const go = (n: Node, p: string): Node => {
    if (n.kind === "leaf") return n;
    if (p === "") return { ...n, ratio: r };
    return p[0] === "a" ? { ...n, a: go(n.a, p.slice(1)) } : { ...n, b: go(n.b, p.slice(1)) };
  };
  return { ...l, tabs: l.tabs.map((t) => (t.key === key ? { ...t, root: go(t.root, path) } : t)) };
}

export function move(l: Layout, key: string, before: string | null): Layout {
  const tab = l.tabs.find((t) => t.key === key);
  if (!tab || key === before) return l;
  const rest = l.tabs.filter((t) => t !== tab);
  const at = before === null ? rest.length : rest.findIndex((t) => t.key === before);
  return { ...l, tabs: rest.toSpliced(at < 0 ? rest.length : at, 0, tab) };
}

export function step(l: Layout, by: number): Layout {
  const at = l.tabs.findIndex((t) => t.key === l.active);
  const n = l.tabs.length;
  return at < 0 ? l : { ...l, active: l.tabs[(at + by + n) % n]!.key };
}

export type Direction = "left" | "right" | "up" | "down";

/** The pane beside the focused one, by the places of the splits. */
export function neighbour(l: Layout, dir: Direction): Layout {
  const tab = activeTab(l);
  if (!tab) return l;
  const boxes = new Map<string, [number, number, number, number]>();
  const lay = (n: Node, x: number, y: number, w: number, h: number): void => {
    if (n.kind === "leaf") {
      boxes.set(n.session, [x, y, w, h]);
    } else if (n.dir === "row") {
      lay(n.a, x, y, w * n.ratio, h);
      lay(n.b, x + w * n.ratio, y, w * (1 - n.ratio), h);
    } else {
      lay(n.a, x, y, w, h * n.ratio);
      lay(n.b, x, y + h * n.ratio, w, h * (1 - n.ratio));
    }
  };
  lay(tab.root, 0, 0, 1, 1);
  const [x, y, w, h] = boxes.get(tab.active)!;
  const e = 1e-6;
  const px = dir === "left" ? x - e : dir === "right" ? x + w + e : x + Math.min(w / 2, 0.01);
  const py = dir === "up" ? y - e : dir === "down" ? y + h + e : y + Math.min(h / 2, 0.01);
  for (const [id, [bx, by, bw, bh]] of boxes) {
    if (px >= bx && px < bx + bw && py >= by && py < by + bh) return focus(l, id);
  }
  return l;
}

/** Drops sessions that are no more. */
export function prune(l: Layout, exists: (session: string) => boolean): Layout {
  return allSessions(l)
    .filter((s) => !exists(s))
    .reduce((acc, s) => close(acc, s), l);
}

/** What was stored may be of another build: null unless it is sound. */
export function parse(value: unknown): Layout | null {
  const seen = new Set<string>();
  const node = (n: unknown, depth: number): n is Node => {
    if (typeof n !== "object" || n === null || depth > 12) return false;
    const v = n as Record<string, unknown>;
    if (v.kind === "leaf") {
      if (typeof v.session !== "string" || seen.has(v.session)) return false;
      seen.add(v.session);
      return true;
    }
    const ratio = v.ratio;
    return (
      v.kind === "split" &&
      (v.dir === "row" || v.dir === "column") &&
      typeof ratio === "number" &&
      ratio >= 0.1 &&
      ratio <= 0.9 &&
      node(v.a, depth + 1) &&
      node(v.b, depth + 1)
    );
  };
  const l = value as Layout | null;
  if (typeof l !== "object" || l === null || !Array.isArray(l.tabs) || typeof l.active !== "string") return null;
  for (const t of l.tabs) {
    if (typeof t?.key !== "string" || typeof t.active !== "string" || !node(t.root, 0)) return null;
    const inside = sessionsOf(t.root);
    if (!inside.includes(t.active) || !inside.includes(t.key)) return null;
  }
  if (l.tabs.length > 0 && !l.tabs.some((t) => t.key === l.active)) return null;
  return l;
}
