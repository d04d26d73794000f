import { textOf } from "../net/http";
import { byPassword } from "../net/login";
import { h } from "./dom";

/** The page for whoever is not logged in; covers everything. */
export class LoginPage {
  private readonly error = h("p", { class: "login-error", testid: "login-error", attrs: { role: "alert" } });
  private readonly name = h("input", {
    testid: "login-name",
    attrs: { name: "username", autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: "" },
  });
  private readonly password = h("input", {
    testid: "login-password",
    attrs: { name: "password", type: "password", autocomplete: "current-password", required: "" },
  });
  private readonly submit = h("button", { class: "primary", testid: "login-submit", text: "Log in" });
  readonly el: HTMLElement;

  constructor(private readonly done: () => void) {
    const form = h(
      "form",
      { class: "login-form", testid: "login-form", attrs: { method: "post", novalidate: "" } },
      h("h1", { text: "ptyd" }),
      h("p", { class: "login-hint", text: "Open the link that the daemon printed at its start, or log in by name." }),
      h("label", {}, "Name", this.name),
      h("label", {}, "Password", this.password),
      this.error,
      this.submit,
      h(
        "p",
        { class: "login-foot" },
        "A new link: ",
        h("code", { text: "ptyd login-link" }),
      ),
    );
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      void this.send();
    });
    this.el = h("main", { class: "login" }, form);
  }

  show(reason: string): void {
    this.error.textContent = reason;
    if (!this.el.isConnected) document.body.append(this.el);
    this.name.focus();
  }

  hide(): void {
    this.password.value = "";
    this.el.remove();
  }

  get shown(): boolean {
    return this.el.isConnected;
  }

  private async send(): Promise<void> {
    const name = this.name.value.trim();
    if (!name || !this.password.value) {
      this.error.textContent = name ? "Enter the password." : "Enter the name.";
      (name ? this.password : this.name).focus();
      return;
    }
    this.submit.disabled = true;
    this.error.textContent = "";
    try {
      await byPassword(name, this.password.value);
      this.done();
    } catch (e) {
      this.error.textContent = textOf(e);
      this.password.select();
    } finally {
      this.submit.disabled = false;
    }
  }
}
