// Bad networks: what was cut comes back by itself, complete and in order.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Daemon, Proxy, connected, eventually, expectText, launchBrowser, loggedIn, openSession, pane, quiet, row, shot, textOf, type } from "./harness.mjs";

// What Chromium itself writes to the console about a connection that broke.
const brokenConnection = /WebSocket connection to|net::ERR_|Failed to load resource/;

/** Fails unless the terminal shows the numbers 1…n, each once, in order. */
async function expectNumbers(page, id, n) {
  const got = (await textOf(page, id)).split("\n").map((l) => l.trim()).filter((l) => /^n\d+$/.test(l));
  const want = Array.from({ length: n }, (_, i) => `n${i + 1}`);
  const at = got.findIndex((l, i) => l !== want[i]);
  assert.ok(at < 0, `line ${at} is ${got[at]}, want ${want[at]}`);
  assert.equal(got.length, n);
}

describe("bad networks", () => {
  let browser, daemon, proxy;
  before(async () => {
    [browser, daemon] = await Promise.all([launchBrowser(), Daemon.start()]);
    proxy = await Proxy.start(daemon.port);
  });
  after(async () => {
    await browser?.close();
    await proxy?.close();
    await daemon?.close();
  });

  test("cuts during output: no line lost, none repeated", async () => {
    const page = await loggedIn(browser, daemon, { base: proxy.url });
    const lines = 900;
    const s = await daemon.create({ argv: ["bash", "-c", `read go; for ((i=1;i<=${lines};i++)); do echo n$i; read -t 0.004 x; done; echo all-done; read x`], name: "numbers" });
    await openSession(page, s.id);
    await type(page, s.id, "go\n");
    for (const at of [100, 200, 350, 500, 700]) {
      await expectText(page, s.id, new RegExp(`^n${at}$`, "m"));
      await eventually("there is a connection to cut", () => proxy.cut() > 0);
    }
    await expectText(page, s.id, /all-done/);
    await connected(page);
    await expectNumbers(page, s.id, lines);
    quiet(page, brokenConnection);
    await page.context().close();
  });

  test("typing while the line is cut: every key once", async () => {
    const page = await loggedIn(browser, daemon, { base: proxy.url });
    const s = await daemon.create({ argv: ["bash", "-c", "stty -echo; while read x; do echo \"<$x>\"; done"], name: "typing" });
    await openSession(page, s.id);
    await pane(page, s.id).first().click();
    const words = Array.from({ length: 40 }, (_, i) => `word${i}`);
    for (const [i, w] of words.entries()) {
      await page.keyboard.type(w.slice(0, 3));
      if (i % 5 === 2) proxy.cut();
      await page.keyboard.type(w.slice(3) + "\n");
    }
    await expectText(page, s.id, /<word39>/);
    const got = [...(await textOf(page, s.id)).matchAll(/<(.*?)>/g)].map((m) => m[1]);
    assert.deepEqual(got, words);
    quiet(page, brokenConnection);
    await page.context().close();
  });

  test("a long cut: the page says so, and catches up", async () => {
    const page = await loggedIn(browser, daemon, { base: proxy.url });
    const s = await daemon.create({ argv: ["bash", "-c", "echo ready; read go; for ((i=1;i<=500;i++)); do echo n$i; done; echo all-done; read x"], name: "long" });
    await openSession(page, s.id);
    await expectText(page, s.id, /ready/);
    proxy.down = true;
    proxy.cut();
    const state = page.getByTestId("connection-state");
    await eventually("the page shows that it waits", async () => ["waiting", "connecting", "offline"].includes(await state.getAttribute("data-state")));
    await page.getByTestId("connection-bar").waitFor();
    await shot(page, "disconnected");
    assert.match(await textOf(page, s.id), /ready/, "the terminal went empty");
    const r = await daemon.call("POST", `/v1/sessions/${s.id}/input`, { text: "go\n" });
    assert.equal(r.status, 204, r.text);
    await eventually("the output is over", async () => /all-done/.test((await daemon.call("GET", `/v1/sessions/${s.id}/output?offset=0`)).text));
    proxy.down = false;
    await page.getByTestId("connection-retry").click();
    await connected(page);
    await expectText(page, s.id, /all-done/);
    await expectNumbers(page, s.id, 500);
    quiet(page, brokenConnection);
    await page.context().close();
  });

  test("the browser goes offline and online", async () => {
    const page = await loggedIn(browser, daemon, { base: proxy.url });
    const s = await daemon.create({ argv: ["bash", "-c", "stty -echo; while read x; do echo \"<$x>\"; done"], name: "offline" });
    await openSession(page, s.id);
    const state = page.getByTestId("connection-state");
    // Chromium's own switch tells the page, but leaves WebSockets alone.
    proxy.down = true;
    await page.context().setOffline(true);
    proxy.cut();
    await eventually("the page notices", async () => ["offline", "waiting"].includes(await state.getAttribute("data-state")));
    proxy.down = false;
    await page.context().setOffline(false);
    await connected(page);
    await type(page, s.id, "back\n");
    await expectText(page, s.id, /<back>/);
    quiet(page, brokenConnection);
    await page.context().close();
  });

  test("the worker dies: the page comes back by itself, to the same sessions", async () => {
    const page = await loggedIn(browser, daemon);
    const s = await daemon.create({ argv: ["bash", "-c", "stty -echo; echo before; while read x; do echo \"<$x>\"; done"], name: "survivor" });
    await openSession(page, s.id);
    await expectText(page, s.id, /before/);
    const { worker } = (await daemon.call("GET", "/v1/status")).json;
    process.kill(worker.pid, "SIGKILL");
    await type(page, s.id, "typed\n");
    await expectText(page, s.id, /<typed>/);
    await connected(page);
    const now = await daemon.session(s.id);
    assert.deepEqual([now.state, now.pid], ["running", s.pid]);
    assert.equal((await textOf(page, s.id)).match(/before/g).length, 1, "output came twice");
    assert.equal((await textOf(page, s.id)).match(/<typed>/g).length, 1, "input came twice");
    quiet(page, brokenConnection);
    await page.context().close();
  });

  test("everything of the daemon dies: the page comes back and tells what is lost", async () => {
    const own = await Daemon.start();
    try {
      const page = await loggedIn(browser, own);
      const s = await own.create({ argv: ["bash", "-c", "echo before-the-end; cat"], name: "victim" });
      await openSession(page, s.id);
      await expectText(page, s.id, /before-the-end/);
      await eventually("it is on the disk", async () => (await own.call("GET", "/v1/status")).json.checkpoints.sessions === 1);
      const { worker } = (await own.call("GET", "/v1/status")).json;
      own.process.kill("SIGSTOP"); // the keeper would start another worker
      process.kill(worker.pid, "SIGKILL");
      await own.stop("SIGKILL");
      await eventually("the page notices", async () => (await page.getByTestId("connection-state").getAttribute("data-state")) !== "connected");
      await own.launch();
      await connected(page);
      await eventually("the session is shown as lost", async () => (await page.locator(`[data-testid="session-row"][data-session-id="${s.id}"]`).getAttribute("data-state")) === "lost");
      await shot(page, "lost");

      // A new page shows what was printed, from the disk, and runs it again.
      const phone = await loggedIn(browser, own, { width: 390, height: 844, hasTouch: true, isMobile: true });
      if (!(await row(phone, s.id).isVisible())) await phone.getByTestId("drawer").click();
      await openSession(phone, s.id);
      await expectText(phone, s.id, /before-the-end/);
      await eventually("its end is shown", async () => (await phone.getByTestId("exit-status").textContent()) === "lost");
      assert.equal(await phone.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, "the page is wider than the phone");
      await shot(phone, "lost-phone");
      await phone.getByTestId("run-again").click();
      let again;
      await eventually("it runs again", async () => (again = (await own.call("GET", "/v1/sessions?state=running")).json.items.find((o) => o.rerun_of === s.id)));
      assert.deepEqual([again.name, again.argv], ["victim", s.argv]);
      await expectText(phone, again.id, /before-the-end/);
      quiet(phone);
      await phone.context().close();

      await page.getByTestId("new-terminal").click();
      await eventually("a new terminal works", async () => (await page.locator('[data-testid="terminal"][data-state="live"]:visible').count()) === 1);
      quiet(page, brokenConnection);
      await page.context().close();
    } finally {
      await own.close();
    }
  });
});
