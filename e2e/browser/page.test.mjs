// The page as a person meets it: from the login link to a shell and back.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  Daemon, connected, eventually, expectText, launchBrowser, livePane, loggedIn, openPage, openSession, pane, quiet, row, shot, textOf, type,
} from "./harness.mjs";

describe("the page", () => {
  let browser, daemon;
  before(async () => {
    [browser, daemon] = await Promise.all([launchBrowser(), Daemon.start()]);
  });
  after(async () => {
    await browser?.close();
    await daemon?.close();
  });

  async function clear() {
    for (const s of await daemon.sessions()) await daemon.call("DELETE", `/v1/sessions/${s.id}?force=true`);
  }

  test("a link logs in, once; the landing opens a shell", async () => {
    await clear();
    const link = await daemon.link();
    const page = await openPage(browser, link);
    await page.getByTestId("app").waitFor();
    await connected(page);
    assert.ok(!page.url().includes("login="), "the secret stays in the address: " + page.url());
    await page.getByTestId("landing").waitFor();
    await shot(page, "landing");
    await page.getByTestId("landing-new").click();
    const id = await livePane(page);
    await type(page, id, "echo hello-$((40+2))\n");
    await expectText(page, id, /hello-42/);
    await shot(page, "shell");
    quiet(page);
    // A reload stays logged in, and shows the same terminal with the same text.
    const before = await textOf(page, id);
    await page.reload();
    await connected(page);
    await expectText(page, await livePane(page), /hello-42/);
    assert.equal((await textOf(page, id)).trimEnd(), before.trimEnd());
    quiet(page);
    await page.context().close();

    // The same link again, in another browser: refused, with a word about it.
    const second = await openPage(browser, link);
    await second.getByTestId("login-form").waitFor();
    await eventually("the page says that the link does not work", async () => (await second.getByTestId("login-error").innerText()).trim() !== "");
    await shot(second, "login-refused");
    quiet(second, /401/);
    await second.context().close();
  });

  test("typing, resizing and the end of a session", async () => {
    await clear();
    const page = await loggedIn(browser, daemon);
    const s = await daemon.create({ argv: ["bash", "--norc", "-c", "PS1='$ ' exec bash --norc -i"], name: "work", cols: 80, rows: 24 });
    await openSession(page, s.id);
    await type(page, s.id, "stty size\n");
    const p = pane(page, s.id).first();
    const [cols, rows] = [await p.getAttribute("data-cols"), await p.getAttribute("data-rows")];
    await expectText(page, s.id, new RegExp(`\\b${rows} ${cols}\\b`));
    await page.setViewportSize({ width: 900, height: 600 });
    await eventually("the terminal is smaller", async () => (await p.getAttribute("data-cols")) !== cols);
    await eventually("the daemon has its size", async () => {
      const now = await daemon.session(s.id);
      return now.cols === Number(await p.getAttribute("data-cols")) && now.rows === Number(await p.getAttribute("data-rows"));
    });
    await type(page, s.id, "exit 7\n");
    await eventually("the exit status is shown", async () => (await p.getByTestId("exit-status").innerText()).includes("exited with 7"));
    await eventually("the list shows it too", async () => (await row(page, s.id).getAttribute("data-state")) === "exited");
    assert.match(await row(page, s.id).getByTestId("session-status").innerText(), /7/);
    await shot(page, "exit-status");
    quiet(page);
    await page.context().close();
  });

  test("the list updates itself; rename; close asks first", async () => {
    await clear();
    const page = await loggedIn(browser, daemon);
    const s = await daemon.create({ argv: ["sleep", "1000"], name: "first-name" });
    await row(page, s.id).waitFor();
    assert.match(await row(page, s.id).getByTestId("session-name").innerText(), /first-name/);
    await row(page, s.id).hover();
    await row(page, s.id).getByTestId("rename").click();
    await page.getByTestId("rename-input").fill("second-name");
    await page.keyboard.press("Enter");
    await eventually("the daemon has the new name", async () => (await daemon.session(s.id)).name === "second-name");
    await eventually("the list has it", async () => /second-name/.test(await row(page, s.id).getByTestId("session-name").innerText()));
    await row(page, s.id).hover();
    await row(page, s.id).getByTestId("close").click();
    await page.getByTestId("confirm").waitFor();
    await shot(page, "close-asks");
    await page.getByTestId("cancel").click();
    assert.equal((await daemon.session(s.id)).state, "running");
    await row(page, s.id).hover();
    await row(page, s.id).getByTestId("close").click();
    await page.getByTestId("confirm").click();
    await eventually("the session has ended", async () => (await daemon.session(s.id)).state === "exited");
    await eventually("the list says so", async () => (await row(page, s.id).getAttribute("data-state")) === "exited");
    await row(page, s.id).hover();
    await row(page, s.id).getByTestId("remove").click();
    await eventually("it is removed", async () => (await daemon.sessions()).length === 0);
    await row(page, s.id).waitFor({ state: "detached" });
    quiet(page);
    await page.context().close();
  });

  test("tabs and panes side by side", async () => {
    await clear();
    const page = await loggedIn(browser, daemon);
    const a = await daemon.create({ argv: ["bash", "-c", "echo this-is-a; cat"], name: "a" });
    const b = await daemon.create({ argv: ["bash", "-c", "echo this-is-b; cat"], name: "b" });
    await openSession(page, a.id);
    await openSession(page, b.id);
    assert.equal(await page.getByTestId("tab").count(), 2);
    await expectText(page, b.id, /this-is-b/);
    await page.locator(`[data-testid="tab"][data-session-id="${a.id}"]`).click();
    await expectText(page, a.id, /this-is-a/);
    await page.getByTestId("split-right").click();
    await eventually("two panes are visible", async () => (await page.locator('[data-testid="terminal"]:visible').count()) === 2);
    await page.getByTestId("split-down").click();
    await eventually("three panes are visible", async () => (await page.locator('[data-testid="terminal"]:visible').count()) === 3);
    await eventually("all are live", async () => (await page.locator('[data-testid="terminal"][data-state="live"]:visible').count()) === 3);
    await shot(page, "split");
    // The layout survives a reload.
    await page.reload();
    await connected(page);
    await eventually("three panes are back", async () => (await page.locator('[data-testid="terminal"]:visible').count()) === 3);
    await expectText(page, a.id, /this-is-a/);
    await pane(page, a.id).first().getByTestId("pane-close").click();
    await eventually("one pane less", async () => (await page.locator('[data-testid="terminal"]:visible').count()) === 2);
    const running = (await daemon.sessions()).filter((s) => s.state === "running");
    assert.ok(running.length >= 4, "closing a pane ended a session");
    quiet(page);
    await page.context().close();
  });

  test("search in the scrollback", async () => {
    await clear();
    const page = await loggedIn(browser, daemon);
    const s = await daemon.create({ argv: ["bash", "-c", "for i in $(seq 1 300); do echo line-$i; done; echo needle-one; seq 1 200; echo needle-two; cat"] });
    await openSession(page, s.id);
    await expectText(page, s.id, /needle-two/);
    await page.getByTestId("search").click();
    await page.getByTestId("search-input").fill("needle");
    await eventually("both are counted", async () => /2/.test(await page.getByTestId("search-count").innerText()));
    await page.getByTestId("search-prev").click();
    await page.getByTestId("search-next").click();
    await shot(page, "search");
    await page.getByTestId("search-close").click();
    quiet(page);
    await page.context().close();
  });

  test("copy and paste on plain http, without the clipboard interface", async () => {
    await clear();
    const base = `http://ptyd.test:${daemon.port}`;
    const page = await loggedIn(browser, daemon, { base });
    assert.equal(await page.evaluate(() => window.isSecureContext), false, "this page is a secure context: the test tests nothing");
    const s = await daemon.create({ argv: ["bash", "-c", "stty -echo; echo copy-this-word; while read x; do echo \"<$x>\"; done"] });
    await openSession(page, s.id);
    await expectText(page, s.id, /copy-this-word/);
    // Select by the mouse: a double click takes the word.
    const cell = await page.evaluate((id) => {
      const t = window.__ptyd.terminals[id].term;
      const r = t.element.querySelector(".xterm-screen").getBoundingClientRect();
      return { x: r.x + (r.width / t.cols) * 6.5, y: r.y + (r.height / t.rows) * 0.5 };
    }, s.id);
    await page.mouse.dblclick(cell.x, cell.y);
    await eventually("the word is selected", () => page.evaluate((id) => window.__ptyd.terminals[id].term.getSelection() === "copy-this-word", s.id));
    await page.keyboard.press("Control+Shift+C");
    await page.keyboard.press("Control+Shift+V");
    await page.keyboard.press("Enter");
    await expectText(page, s.id, /<copy-this-word>/);
    quiet(page);
    await page.context().close();
  });

  test("help, settings and themes", async () => {
    await clear();
    const page = await loggedIn(browser, daemon);
    await page.getByTestId("help").click();
    await page.getByTestId("help-dialog").waitFor();
    await shot(page, "help");
    await page.keyboard.press("Escape");
    await page.getByTestId("help-dialog").waitFor({ state: "hidden" });
    await page.getByTestId("landing-new").click();
    const id = await livePane(page);
    await page.getByTestId("settings").click();
    await page.getByTestId("settings-dialog").waitFor();
    const theme = page.getByTestId("set-theme");
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await theme.selectOption("light");
    const light = await colour();
    await shot(page, "settings-light");
    await theme.selectOption("dark");
    await eventually("dark looks different from light", async () => (await colour()) !== light);
    const size = page.getByTestId("set-font-size");
    const cols = await pane(page, id).first().getAttribute("data-cols");
    await size.fill("22");
    await size.press("Tab");
    await page.keyboard.press("Escape");
    await eventually("larger letters, fewer columns", async () => Number(await pane(page, id).first().getAttribute("data-cols")) < Number(cols));
    await page.reload();
    await connected(page);
    await eventually("the settings stay", async () => (await page.evaluate((i) => window.__ptyd.terminals[i]?.term.options.fontSize, id)) === 22);
    quiet(page);
    await page.context().close();
  });

  test("a strict policy, and nothing from elsewhere", async () => {
    const context = await browser.newContext();
    const requests = [];
    context.on("request", (r) => requests.push(r.url()));
    const page = await openPage(browser, daemon.url + "/", { context });
    await page.getByTestId("login-form").waitFor();
    const r = await page.request.get(daemon.url + "/");
    const csp = r.headers()["content-security-policy"] ?? "";
    for (const need of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"]) assert.ok(csp.includes(need), `the policy lacks ${need}: ${csp}`);
    assert.ok(!/unsafe-eval|script-src[^;]*unsafe-inline/.test(csp), csp);
    for (const url of requests) assert.ok(url.startsWith(daemon.url + "/"), "the page asked elsewhere: " + url);
    // The policy works: text becomes no script, in whichever way.
    const ways = await page.evaluate(() => {
      const refused = [];
      const inline = document.createElement("script");
      for (const [name, way] of [
        ["inline script", () => { inline.textContent = "window.inlined = true"; document.body.append(inline); }],
        ["markup", () => { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.inlined = true'>"); }],
      ]) {
        try {
          way();
        } catch {
          refused.push(name);
        }
      }
      return refused;
    });
    assert.deepEqual(ways, ["inline script", "markup"]);
    assert.equal(await page.evaluate(() => window.inlined), undefined);
    await shot(page, "login");
    await context.close();
  });

  test("login by name and password, and logout", async () => {
    await daemon.call("POST", "/v1/users", { name: "erin", role: "operator" });
    const set = await daemon.call("PATCH", "/v1/users/erin", { password: "correct horse battery staple" });
    assert.ok(set.status < 300, set.text);
    const page = await openPage(browser, daemon.url + "/");
    await page.getByTestId("login-name").fill("erin");
    await page.getByTestId("login-password").fill("wrong");
    await page.getByTestId("login-submit").click();
    await eventually("the mistake is named", async () => (await page.getByTestId("login-error").innerText()).trim() !== "");
    await page.getByTestId("login-password").fill("correct horse battery staple");
    await page.getByTestId("login-submit").click();
    await page.getByTestId("app").waitFor();
    await connected(page);
    await page.getByTestId("logout").click();
    await page.getByTestId("login-form").waitFor();
    await page.reload();
    await page.getByTestId("login-form").waitFor();
    quiet(page, /401/);
    await page.context().close();
  });

  test("a phone's width", async () => {
    await clear();
    const s = await daemon.create({ argv: ["bash", "-c", "echo small-screen; cat"], name: "phone" });
    const page = await loggedIn(browser, daemon, { width: 390, height: 844, hasTouch: true, isMobile: true });
    const wide = () => page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
    assert.equal(await wide(), false, "the page is wider than the phone");
    if (!(await row(page, s.id).isVisible())) await page.getByTestId("drawer").click();
    await eventually("the list has slid in", async () => (await row(page, s.id).boundingBox()).x >= 0);
    await shot(page, "phone-list");
    await row(page, s.id).getByTestId("session-open").click();
    await expectText(page, s.id, /small-screen/);
    await page.getByTestId("key-row").waitFor();
    assert.equal(await wide(), false, "the page is wider than the phone");
    await type(page, s.id, "typed\n");
    await expectText(page, s.id, /typed\ntyped/);
    await shot(page, "phone-terminal");
    quiet(page);
    await page.context().close();
  });

  test("below a path of a proxy", async () => {
    const own = await Daemon.start(["--base-path", "/terminals"]);
    try {
      const r = await own.call("POST", "/terminals/v1/login-links", {});
      assert.equal(r.status, 201, r.text);
      assert.match(r.json.url, /\/terminals\/#login=/);
      const page = await openPage(browser, r.json.url);
      await page.getByTestId("app").waitFor();
      await connected(page);
      await page.getByTestId("landing-new").click();
      const id = await livePane(page);
      await type(page, id, "echo below-$((1+1))\n");
      await expectText(page, id, /below-2/);
      quiet(page);
      await page.context().close();
    } finally {
      await own.close();
    }
  });
});
