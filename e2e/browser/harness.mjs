// What the browser's tests share: a daemon of their own, Debian's Chromium, and
// ways to look at a terminal. Nothing waits by sleeping; every wait has a limit
// and says what it waited for.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, mkdirSync, openSync, closeSync } from "node:fs";
import { createRequire } from "node:module";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";

const root = fileURLToPath(new URL("../..", import.meta.url));
const binary = process.env.PTYD_E2E_BINARY ?? path.join(root, ".cache/e2e/ptyd-test");
const shots = path.join(root, "out/screenshots");
// The page's own packages hold playwright-core: one lock file for all of Node's.
const { chromium } = createRequire(path.join(root, "web/package.json"))("playwright-core");

const limit = 30_000;

/** Waits until probe() is true; it looks often, the limit only ends a broken run. */
export async function eventually(what, probe, ms = limit) {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    try {
      if (await probe()) return;
    } catch (e) {
      last = e;
    }
    if (Date.now() > end) throw new Error(`after ${ms} ms still not: ${what}${last ? ` (${last.message})` : ""}`);
    await new Promise((r) => setTimeout(r, 20));
  }
}

/** A daemon with a state directory of its own. */
export class Daemon {
  static async start(args = []) {
    const d = new Daemon();
    d.dir = mkdtempSync(path.join(tmpdir(), "ptyd-web-"));
    d.logFile = d.dir + ".log";
    await d.launch(args);
    return d;
  }

  async launch(args = []) {
    const log = openSync(this.logFile, "a");
    this.process = spawn(binary, ["serve", "--state-dir", this.dir, "--listen", this.address ?? "127.0.0.1:0", "--allowed-hosts", "127.0.0.1,ptyd.test", ...args], {
      stdio: ["ignore", log, log],
      env: { PATH: process.env.PATH, HOME: this.dir, SHELL: "/bin/bash", LANG: "C.UTF-8" },
    });
    closeSync(log);
    this.exit = new Promise((r) => this.process.once("exit", (code, signal) => r(code ?? signal)));
    let ended = false;
    void this.exit.then(() => (ended = true));
    const base = args[args.indexOf("--base-path") + 1 || args.length] ?? "";
    await eventually("the daemon answers", async () => {
      if (ended) throw new Error("it ended: " + this.log());
      return (await this.call("GET", base + "/readyz")).status === 200;
    });
    const listen = (await this.call("GET", base + "/v1/status")).json.listen;
    this.address = listen.map((l) => /127\.0\.0\.1:\d+/.exec(l)?.[0]).find(Boolean);
    this.port = Number(this.address.split(":")[1]);
    this.url = `http://${this.address}`;
  }

  log() {
    return readFileSync(this.logFile, "utf8").slice(-8000);
  }

  /** A request over the Unix socket, as the admin. */
  call(method, target, body) {
    return new Promise((resolve, reject) => {
      const req = http.request(
        { socketPath: path.join(this.dir, "ptyd.sock"), method, path: target, agent: false, headers: body ? { "Content-Type": "application/json" } : {} },
        (res) => {
          let text = "";
          res.setEncoding("utf8");
          res.on("data", (c) => (text += c));
          res.on("end", () => {
            let json;
            try {
              json = JSON.parse(text);
            } catch {
              // not every answer is JSON
            }
            resolve({ status: res.statusCode, text, json });
          });
        },
      );
      req.on("error", reject);
      req.setTimeout(limit, () => req.destroy(new Error("no answer")));
      req.end(body ? JSON.stringify(body) : undefined);
    });
  }

  async create(spec) {
    const r = await this.call("POST", "/v1/sessions", spec);
    assert.equal(r.status, 201, r.text);
    return r.json;
  }

  async session(id) {
    return (await this.call("GET", `/v1/sessions/${id}`)).json;
  }

  async sessions() {
    return (await this.call("GET", "/v1/sessions?limit=500")).json.items;
  }

  /** A login link, for another host than the daemon's own address when given. */
  async link(base = this.url) {
    const r = await this.call("POST", "/v1/login-links", {});
    assert.equal(r.status, 201, r.text);
    return base + "/" + r.json.url.slice(r.json.url.indexOf("#"));
  }

  async stop(signal = "SIGTERM") {
    this.process.kill(signal);
    return await this.exit;
  }

  /** Ends it and fails when it reported a race or a panic. */
  async close() {
    const status = await this.stop();
    const log = readFileSync(this.logFile, "utf8");
    rmSync(this.dir, { recursive: true, force: true });
    rmSync(this.logFile, { force: true });
    for (const sign of ["DATA RACE", "panic: ", "fatal error: "]) {
      assert.ok(!log.includes(sign), `the daemon reported ${sign}:\n${log.slice(-8000)}`);
    }
    assert.equal(status, 0, "the daemon's exit status\n" + log.slice(-4000));
  }
}

/** A TCP proxy whose connections can be cut, and which can refuse new ones. */
export class Proxy {
  static async start(port) {
    const p = new Proxy();
    p.sockets = new Set();
    p.down = false;
    p.server = net.createServer((a) => {
      if (p.down) {
        a.resetAndDestroy();
        return;
      }
      const b = net.connect(port, "127.0.0.1");
      for (const [x, y] of [[a, b], [b, a]]) {
        p.sockets.add(x);
        x.setNoDelay(true);
        x.pipe(y);
        x.on("error", () => y.destroy());
        x.on("close", () => {
          p.sockets.delete(x);
          y.destroy();
        });
      }
    });
    await new Promise((r) => p.server.listen(0, "127.0.0.1", r));
    p.port = p.server.address().port;
    p.url = `http://127.0.0.1:${p.port}`;
    return p;
  }

  /** Breaks every connection as a pulled cable with a reset does. */
  cut() {
    const n = this.sockets.size;
    for (const s of this.sockets) s.resetAndDestroy();
    return n;
  }

  async close() {
    this.cut();
    await new Promise((r) => this.server.close(r));
  }
}

/** Chromium, once a test file. */
export function launchBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
      // A name that is not loopback: the page is then no secure context, as on
      // a machine in the network without TLS.
      "--host-resolver-rules=MAP ptyd.test 127.0.0.1",
    ],
  });
}

/** A page that remembers what its console complained about. */
export async function openPage(browser, url, { width = 1200, height = 800, context, ...options } = {}) {
  context ??= await browser.newContext({ viewport: { width, height }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(limit);
  page.complaints = [];
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") page.complaints.push(`${m.type()}: ${m.text()}`);
  });
  page.on("pageerror", (e) => page.complaints.push(`exception: ${e.stack ?? e}`));
  await page.goto(url);
  return page;
}

/** Opens the page, logged in. */
export async function loggedIn(browser, daemon, options = {}) {
  const page = await openPage(browser, await daemon.link(options.base), options);
  await page.getByTestId("app").waitFor();
  await connected(page);
  return page;
}

// What a slow machine without a graphics card makes Chromium and xterm.js say.
const machine = /GL Driver Message|task queue exceeded allotted deadline/;

/** Fails when the console complained about anything that `allowed` does not match. */
export function quiet(page, allowed = /(?!)/) {
  const bad = page.complaints.filter((c) => !allowed.test(c) && !machine.test(c));
  assert.deepEqual(bad, [], "the console complained");
}

export async function connected(page) {
  await page.locator('[data-testid="connection-state"][data-state="connected"]').waitFor({ state: "attached" });
}

export const pane = (page, id) => page.locator(`[data-testid="terminal"][data-session-id="${id}"]`);
export const row = (page, id) => page.locator(`[data-testid="session-row"][data-session-id="${id}"]`);

/** The pane of the active tab that is live. */
export async function livePane(page) {
  const p = page.locator('[data-testid="terminal"][data-state="live"]:visible').first();
  await p.waitFor();
  return await p.getAttribute("data-session-id");
}

/** Opens a session from the list and waits for its stream. */
export async function openSession(page, id) {
  await row(page, id).getByTestId("session-open").click();
  await page.locator(`[data-testid="terminal"][data-session-id="${id}"]:visible`).waitFor();
  await eventually(`${id} is attached`, async () => ["live", "ended"].includes(await pane(page, id).first().getAttribute("data-state")));
}

/** All text of a terminal: scrollback and screen, lines joined where they wrap. */
export function textOf(page, id) {
  return page.evaluate((id) => {
    const t = window.__ptyd?.terminals[id];
    if (!t) return "";
    const b = t.term.buffer.active;
    let out = "";
    for (let i = 0; i < b.length; i++) {
      const line = b.getLine(i);
      if (i > 0 && !line.isWrapped) out += "\n";
      out += line.translateToString(!b.getLine(i + 1)?.isWrapped);
    }
    return out;
  }, id);
}

/** The visible screen, line by line. */
export function screenOf(page, id) {
  return page.evaluate((id) => {
    const t = window.__ptyd.terminals[id];
    const b = t.term.buffer.active;
    const lines = [];
    for (let i = 0; i < t.term.rows; i++) lines.push(b.getLine(b.baseY + i)?.translateToString(true) ?? "");
    return lines;
  }, id);
}

export async function expectText(page, id, re, ms) {
  let last = "";
  try {
    await eventually(`the terminal shows ${re}`, async () => re.test((last = await textOf(page, id))), ms);
  } catch (e) {
    throw new Error(`${e.message}; it shows:\n${last.slice(-2000)}`);
  }
}

/** Types into a terminal as a person does: a click to focus it, then keys. */
export async function type(page, id, text) {
  await pane(page, id).first().click();
  await page.keyboard.type(text);
}

export async function shot(page, name) {
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, name + ".png") });
}
