import type { App } from "../app/app";
import { askToNotify, canNotify } from "../app/notify";
import { defaults, type Settings } from "../app/settings";
import { openDialog } from "./dialog";
import { button, h } from "./dom";

type Keys<V> = { [K in keyof Settings]: Settings[K] extends V ? K : never }[keyof Settings];

/** Everything applies as it is changed; there is nothing to confirm. */
export function settingsDialog(app: App): void {
  const store = app.settings;

  function row(label: string, control: HTMLElement, hint = ""): HTMLElement {
    return h("label", { class: "set-row" }, h("span", {}, label, hint ? h("small", { text: hint }) : null), control);
  }

  function choice<K extends Keys<string>>(key: K, testid: string, options: [Settings[K], string][]): HTMLElement {
    const el = h("select", { testid });
    for (const [value, text] of options) {
      const o = h("option", { text, attrs: { value: String(value) } });
      o.selected = store.now[key] === value;
      el.append(o);
    }
    el.addEventListener("change", () => store.change({ [key]: el.value } as Partial<Settings>));
    return el;
  }

  function number(key: Keys<number>, testid: string, min: number, max: number, step: number): HTMLElement {
    const el = h("input", {
      testid,
      attrs: { type: "number", min: String(min), max: String(max), step: String(step), value: String(store.now[key]) },
    });
    el.addEventListener("change", () => {
      const n = el.valueAsNumber;
      if (Number.isFinite(n)) store.change({ [key]: n });
      el.value = String(store.now[key]);
    });
    return el;
  }

  function check(key: Keys<boolean>, testid: string): HTMLInputElement {
    const el = h("input", { testid, class: "switch", attrs: { type: "checkbox", role: "switch" } });
    el.checked = store.now[key];
    el.addEventListener("change", () => store.change({ [key]: el.checked }));
    return el;
  }

  const font = h("input", {
    testid: "set-font-family",
    attrs: { type: "text", placeholder: "system monospace", spellcheck: "false", value: store.now.fontFamily },
  });
  font.addEventListener("change", () => store.change({ fontFamily: font.value }));

  const notices = h("input", { testid: "set-notify", class: "switch", attrs: { type: "checkbox", role: "switch" } });
  notices.checked = store.now.notify;
  notices.disabled = !canNotify();
  notices.addEventListener("change", async () => {
    // The browser is asked here, on a click, and nowhere else.
    const on = notices.checked && (await askToNotify());
    if (notices.checked && !on) app.toast("The browser does not allow notices for this page.", "error");
    notices.checked = on;
    store.change({ notify: on });
  });

  const body = h(
    "div",
    { class: "dialog-body settings" },
    h("h3", { text: "Look" }),
    row("Theme", choice("theme", "set-theme", [["auto", "Like the system"], ["dark", "Dark"], ["light", "Light"]])),
    row("Font size", number("fontSize", "set-font-size", 8, 40, 1)),
    row("Font", font),
    row("Line height", number("lineHeight", "set-line-height", 1, 2, 0.05)),
    row("Cursor", choice("cursorStyle", "set-cursor-style", [["block", "Block"], ["bar", "Bar"], ["underline", "Underline"]])),
    row("Blinking cursor", check("cursorBlink", "set-cursor-blink")),
    h("h3", { text: "Use" }),
    row("Scrollback lines", number("scrollback", "set-scrollback", 0, 200_000, 500)),
    row("Bell", choice("bell", "set-bell", [["none", "None"], ["visual", "Flash"], ["sound", "Sound"]])),
    row(
      "Desktop notices",
      notices,
      canNotify() ? "when a command ends or a bell rings while this page is hidden" : "browsers allow them only over https or on localhost",
    ),
    row("Copy what is selected", check("copyOnSelect", "set-copy-on-select")),
    row("Option is Meta", check("optionIsMeta", "set-option-is-meta"), "on a Mac"),
    h("h3", { text: "Access" }),
    row("Screen reader", check("screenReader", "set-screen-reader"), "reads out what is printed"),
    row("Draw by GPU", check("webgl", "set-webgl"), "faster; switch off if text looks wrong"),
    h(
      "div",
      { class: "dialog-buttons" },
      button({
        testid: "set-defaults",
        text: "Defaults",
        on: {
          click: () => {
            store.change(defaults);
            d.close();
            settingsDialog(app);
          },
        },
      }),
    ),
  );
  const d = openDialog("Settings", "settings-dialog", body);
}
