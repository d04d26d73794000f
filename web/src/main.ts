import "./csp";
import "@xterm/xterm/css/xterm.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/list.css";
import "./style/pane.css";
import "./style/dialog.css";
import "./style/narrow.css";
import { App } from "./app/app";
import { clientId } from "./conn/clientid";
import { textOf, whenUnauthenticated } from "./net/http";
import * as login from "./net/login";
import { dark, light } from "./term/palette";
import { LoginPage } from "./ui/login";
import { Shell } from "./ui/shell";
import { Toasts } from "./ui/toast";

const BUILD = `web ${import.meta.env.MODE}`;

async function main(): Promise<void> {
  // Before anything else, so that nothing sees the secret in the address.
  const link = login.takeLink(location, history);
  const id = clientId({
    storage: sessionStorage,
    locks: navigator.locks,
    channel: typeof BroadcastChannel === "undefined" ? undefined : (name) => new BroadcastChannel(name),
  });
  let refusal = "";
  if (link) {
    try {
      await login.byLink(link);
    } catch (e) {
      refusal = textOf(e);
    }
  }
  const loggedIn = login.remembered();
  const { id: client, kept } = await id;
  const app = new App(client, kept, BUILD);
  page(app, loggedIn, refusal);
}

function page(app: App, loggedIn: boolean, refusal: string): void {
  const toasts = new Toasts();
  app.toast = (text, kind) => toasts.show(text, kind);
  document.body.append(toasts.el);

  const shell = new Shell(app, BUILD);
  const start = () => {
    loginPage.hide();
    if (!shell.el.isConnected) document.body.prepend(shell.el);
    app.start();
  };
  const loginPage = new LoginPage(start);

  const theme = () => {
    const isDark = app.settings.dark;
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    document
      .querySelector('meta[name="theme-color"]')
      ?.setAttribute("content", (isDark ? dark : light).background ?? "");
  };
  theme();
  app.listen("settings", theme);

  whenUnauthenticated(() => {
    if (login.adoptNewerKey()) return;
    if (app.conn.state.kind !== "loggedout") app.loggedOut("The login has ended.");
  });
  app.listen("conn", () => {
    const s = app.conn.state;
    if (s.kind !== "loggedout" || loginPage.shown) return;
    if (login.adoptNewerKey()) return app.start();
    shell.el.remove();
    loginPage.show(s.reason);
  });
  // The same login serves all tabs of this browser.
  login.onKeyChange((now) => {
    if (!now) app.loggedOut("Logged out in another tab.");
    else if (loginPage.shown) start();
  });
  // A login link opened in a page that is already here.
  addEventListener("hashchange", async () => {
    const link = login.takeLink(location, history);
    if (!link) return;
    try {
      await login.byLink(link);
      app.conn.stop();
      start();
    } catch (e) {
      if (loginPage.shown) loginPage.show(textOf(e));
      else app.toast(textOf(e), "error");
    }
  });

  viewport();
  expose(app);
  if (loggedIn) {
    start();
    // A used-up link does no harm to a login that still holds.
    toasts.show(refusal, "error");
  } else {
    loginPage.show(refusal);
  }
}

/** The keyboard of a phone covers the page; what is left of it is the page's height. */
function viewport(): void {
  const v = window.visualViewport;
  if (!v) return;
  const set = () => document.documentElement.style.setProperty("--page-height", `${Math.round(v.height)}px`);
  v.addEventListener("resize", set);
  set();
}

/** For looking only: nothing here does what the page itself would not. */
function expose(app: App): void {
  Object.defineProperty(window, "__ptyd", {
    value: Object.freeze({
      get state() {
        return app.conn.state.kind;
      },
      get terminals() {
        return Object.fromEntries([...app.views].map(([id, v]) => [id, { term: v.term, offset: v.offset }]));
      },
    }),
  });
}

void main();
