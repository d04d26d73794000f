// Full-screen programs, as people use them.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { Daemon, connected, eventually, expectText, launchBrowser, loggedIn, openSession, pane, quiet, screenOf, shot, textOf, type } from "./harness.mjs";

describe("programs", () => {
  let browser, daemon, files;
  before(async () => {
    files = mkdtempSync(path.join(tmpdir(), "ptyd-files-"));
    [browser, daemon] = await Promise.all([launchBrowser(), Daemon.start()]);
  });
  after(async () => {
    await browser?.close();
    await daemon?.close();
    rmSync(files, { recursive: true, force: true });
  });

  test("vim: edit, reload the page, go on, save", async () => {
    const file = path.join(files, "note.txt");
    const page = await loggedIn(browser, daemon);
    const s = await daemon.create({ argv: ["vim", "-u", "NONE", "-N", "-c", "set laststatus=2", file], name: "vim" });
    await openSession(page, s.id);
    await expectText(page, s.id, /note\.txt/);
    await type(page, s.id, "ifirst line from the page\nsecond line, caf\u00e9 \u6f22\u5b57");
    await expectText(page, s.id, /second line, caf\u00e9/);
    await eventually("vim has drawn all", async () => (await screenOf(page, s.id))[1].includes("\u6f22\u5b57"));
    const before = await screenOf(page, s.id);
    await shot(page, "vim");
    await page.reload();
    await connected(page);
    await eventually("the screen is as before", async () => {
      const now = await screenOf(page, s.id).catch(() => []);
      return JSON.stringify(now) === JSON.stringify(before);
    });
    await shot(page, "vim-reloaded");
    await type(page, s.id, "\nthird line after the reload");
    await page.keyboard.press("Escape");
    await page.keyboard.type(":wq\n");
    await eventually("the status is shown", async () => (await pane(page, s.id).first().getByTestId("exit-status").innerText()).includes("0"));
    assert.equal(readFileSync(file, "utf8"), "first line from the page\nsecond line, caf\u00e9 \u6f22\u5b57\nthird line after the reload\n");
    quiet(page);
    await page.context().close();
  });

  test("two pages on one session with vim", async () => {
    const file = path.join(files, "shared.txt");
    const s = await daemon.create({ argv: ["vim", "-u", "NONE", "-N", "-c", "set laststatus=2", file], name: "shared" });
    const [one, two] = await Promise.all([
      loggedIn(browser, daemon, { width: 1200, height: 800 }),
      loggedIn(browser, daemon, { width: 900, height: 700 }),
    ]);
    await openSession(one, s.id);
    await expectText(one, s.id, /shared\.txt/);
    await openSession(two, s.id);
    await type(one, s.id, "itext of page one, ");
    await expectText(two, s.id, /text of page one/);
    await type(two, s.id, "text of page two");
    await expectText(one, s.id, /text of page one, text of page two/);
    // Both show one and the same screen, whatever the size of their windows.
    await eventually("both screens are equal", async () => {
      const [a, b] = await Promise.all([screenOf(one, s.id), screenOf(two, s.id)]);
      return JSON.stringify(a) === JSON.stringify(b);
    });
    const size = (p) => pane(p, s.id).first().evaluate((e) => `${e.dataset.cols}x${e.dataset.rows}`);
    assert.equal(await size(one), await size(two));
    assert.ok((await daemon.session(s.id)).viewers >= 2);
    await shot(one, "two-pages-one");
    await shot(two, "two-pages-two");
    await one.keyboard.press("Escape");
    await type(two, s.id, "");
    await two.keyboard.press("Escape");
    await two.keyboard.type(":wq\n");
    for (const p of [one, two]) {
      await eventually("the end is shown", async () => (await pane(p, s.id).first().getByTestId("exit-status").innerText()).includes("0"));
    }
    assert.equal(readFileSync(file, "utf8"), "text of page one, text of page two\n");
    quiet(one);
    quiet(two);
    await one.context().close();
    await two.context().close();
  });

  test("htop runs, reacts and ends", async () => {
    const page = await loggedIn(browser, daemon);
    const s = await daemon.create({ argv: ["htop"], name: "htop" });
    await openSession(page, s.id);
    await expectText(page, s.id, /Load average/);
    await page.keyboard.press("F5");
    await expectText(page, s.id, /F10|Quit/);
    await shot(page, "htop");
    const alternate = () => page.evaluate((id) => window.__ptyd.terminals[id].term.buffer.active.type, s.id);
    assert.equal(await alternate(), "alternate");
    await type(page, s.id, "q");
    await eventually("it has ended", async () => (await daemon.session(s.id)).state === "exited");
    await eventually("the screen is left", async () => (await alternate()) === "normal");
    quiet(page);
    await page.context().close();
  });

  test("colours, wide characters and a bell", async () => {
    const page = await loggedIn(browser, daemon);
    const s = await daemon.create({
      argv: ["bash", "-c", "for i in 1 2 3 4 5 6; do printf '\\e[4%dm  \\e[0m' $i; done; printf '\\n\\e[38;2;255;100;0mtruecolor\\e[0m \\e[1mbold\\e[0m \\e[3mitalic\\e[0m \\e[4munder\\e[0m\\n\u65e5\u672c\u8a9e|\\n\u{1F680}|\\n\\a'; cat"],
      name: "colours",
    });
    await openSession(page, s.id);
    await expectText(page, s.id, /truecolor bold italic under/);
    await expectText(page, s.id, /\u65e5\u672c\u8a9e\|/);
    await shot(page, "colours");
    assert.match(await textOf(page, s.id), /\u{1F680}\|/u);
    quiet(page);
    await page.context().close();
  });
});
