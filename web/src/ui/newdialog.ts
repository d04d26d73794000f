import type { App } from "../app/app";
import { splitCommand } from "../app/format";
import { Problem, textOf } from "../net/http";
import type { NewSession } from "../net/sessions";
import { openDialog } from "./dialog";
import { button, h } from "./dom";

/** A new terminal with a command, a directory and a name; all of them optional. */
export function newDialog(app: App): void {
  const input = (testid: string, placeholder: string) =>
    h("input", { testid, attrs: { placeholder, spellcheck: "false", autocapitalize: "none", autocomplete: "off" } });
  const command = input("new-command", "your shell");
  const cwd = input("new-cwd", "home directory");
  const name = input("new-name", "none");
  const error = h("p", { class: "form-error", testid: "new-error", attrs: { role: "alert" } });
  const submit = h("button", { class: "primary", testid: "new-submit", text: "Open" });
  const form = h(
    "form",
    { class: "dialog-body form", attrs: { novalidate: "" } },
    h("label", {}, "Command", command),
    h("label", {}, "Directory", cwd),
    h("label", {}, "Name", name),
    error,
    h("div", { class: "dialog-buttons" }, button({ text: "Cancel", testid: "cancel", on: { click: () => d.close() } }), submit),
  );
  const fields: Record<string, HTMLInputElement> = { argv: command, shell: command, cwd, name };
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    void send();
  });
  const d = openDialog("New terminal", "new-dialog", form);
  command.focus();

  async function send(): Promise<void> {
    error.textContent = "";
    for (const f of Object.values(fields)) f.removeAttribute("aria-invalid");
    const argv = splitCommand(command.value);
    if (!argv) {
      error.textContent = "A quote in the command is left open.";
      command.setAttribute("aria-invalid", "true");
      return command.focus();
    }
    const n: NewSession = argv.length > 0 ? { argv } : { shell: true };
    if (cwd.value.trim()) n.cwd = cwd.value.trim();
    if (name.value.trim()) n.name = name.value.trim();
    submit.disabled = true;
    try {
      await app.create(n);
      d.close();
      app.focusActive();
    } catch (e) {
      error.textContent = textOf(e);
      const field = e instanceof Problem ? fields[e.field.split(/[.[]/)[0] ?? ""] : undefined;
      field?.setAttribute("aria-invalid", "true");
      (field ?? command).focus();
    } finally {
      submit.disabled = false;
    }
  }
}
