import type { App } from "../app/app";
import { read } from "../term/clipboard";
import { openDialog } from "./dialog";
import { button, h } from "./dom";

/** Paste from a menu: browsers hand the clipboard over on a key, and to scripts only on https. */
export async function pasteInto(app: App): Promise<void> {
  const view = app.active;
  if (!view) return;
  const text = await read();
  if (text !== null) {
    view.paste(text);
    view.focus();
    return;
  }
  const field = h("textarea", {
    testid: "paste-field",
    label: "Paste here",
    attrs: { rows: "5", spellcheck: "false", placeholder: "Press Ctrl+V here, or hold and choose Paste" },
  });
  const send = () => {
    const value = field.value;
    d.close();
    if (value) view.paste(value);
    view.focus();
  };
  const d = openDialog(
    "Paste",
    "paste-dialog",
    h(
      "div",
      { class: "dialog-body form" },
      h("p", { text: "The browser does not let this page read the clipboard." }),
      field,
      h(
        "div",
        { class: "dialog-buttons" },
        button({ text: "Cancel", on: { click: () => d.close() } }),
        button({ class: "primary", text: "Send to the terminal", on: { click: send } }),
      ),
    ),
  );
  field.focus();
}
