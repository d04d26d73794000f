// Makes docs/screenshot.png from the real page: `make screenshot`.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Daemon, connected, eventually, expectText, launchBrowser, openPage, openSession, pane, type } from "./harness.mjs";

const out = fileURLToPath(new URL("../../docs/screenshot.png", import.meta.url));
const [browser, daemon] = await Promise.all([launchBrowser(), Daemon.start()]);
try {
  const src = path.join(daemon.dir, "src");
  mkdirSync(src);
  const file = path.join(src, "primes.py");
  writeFileSync(
    file,
    `"""Print the primes below a limit."""
import sys


def primes(limit):
    sieve = bytearray([1]) * limit
    for n in range(2, limit):
        if sieve[n]:
            yield n
            sieve[n * n :: n] = bytes(len(sieve[n * n :: n]))


if __name__ == "__main__":
    print(*primes(int(sys.argv[1])))
`,
  );
  const env = { HOME: daemon.dir };
  const done = await daemon.create({ argv: ["bash", "-c", "exit 0"], name: "build", cwd: src });
  const vim = await daemon.create({ argv: ["vim", "-N", "-c", "syntax on", "-c", "set number laststatus=2 ruler background=dark", "primes.py"], name: "editor", cwd: src, env });
  await eventually("the build has ended", async () => (await daemon.session(done.id)).state === "exited");

  const page = await openPage(browser, await daemon.link(), { width: 1360, height: 820, colorScheme: "dark" });
  await page.getByTestId("app").waitFor();
  await connected(page);
  await openSession(page, vim.id);
  await expectText(page, vim.id, /primes/);

  /** Opens a shell beside the active pane, with a prompt of nobody's. */
  async function shell(button, name) {
    const before = new Set((await daemon.sessions()).map((s) => s.id));
    await page.getByTestId(button).click();
    let id;
    await eventually("the new shell is there", async () => (id = (await daemon.sessions()).find((s) => !before.has(s.id))?.id));
    await daemon.call("PATCH", `/v1/sessions/${id}`, { name });
    await page.locator(`[data-testid="terminal"][data-session-id="${id}"][data-state="live"]:visible`).waitFor();
    await type(page, id, `export HOME=${daemon.dir}; cd ~/src\n`);
    await page.keyboard.type("PS1='\\[\\e[1;32m\\]ada@box\\[\\e[0m\\]:\\[\\e[1;34m\\]\\w\\[\\e[0m\\]$ '; clear\n");
    await expectText(page, id, /^ada@box:~\/src\$/m);
    return id;
  }
  const work = await shell("split-right", "shell");
  await page.keyboard.type("python3 primes.py 300\n");
  await expectText(page, work, /293/);
  const tops = await shell("split-down", "monitor");
  await page.keyboard.type("htop\n");
  await expectText(page, tops, /Load average/);
  await pane(page, work).first().click();
  await page.keyboard.type("git log --oneline");
  await expectText(page, work, /--oneline/);
  await page.screenshot({ path: out });
  console.log(out);
} finally {
  await browser.close();
  await daemon.close();
}
