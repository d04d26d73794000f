import { address } from "../app/base";
import type { Shortcut } from "../app/keys";
import { openDialog } from "./dialog";
import { h } from "./dom";

const groups = ["Terminals", "Text", "Page"] as const;

export function helpDialog(list: Shortcut[], version: string): void {
  const body = h("div", { class: "dialog-body help" });
  for (const g of groups) {
    const table = h("dl", { class: "keys" });
    for (const s of list.filter((x) => x.group === g && x.keys !== "")) {
      table.append(
        h("div", {}, h("dt", {}, ...s.keys.split(" or ").flatMap((k, i) => [i ? " or " : "", h("kbd", { text: k })])), h("dd", { text: s.about })),
      );
    }
    body.append(h("section", {}, h("h3", { text: g }), table));
  }
  const licences = h("a", { text: "Licences", attrs: { href: address("licenses.txt"), target: "_blank", rel: "noopener noreferrer" } });
  body.append(h("p", { class: "help-foot" }, version, version ? " · " : "", licences));
  openDialog("Keyboard shortcuts", "help-dialog", body);
}
