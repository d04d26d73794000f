import { button, h } from "./dom";
import { icon } from "./icons";

export interface Dialog {
  el: HTMLDialogElement;
  close(): void;
}

/**
 * A modal dialog with a title and a closing button. Escape and a click beside
 * it close it; the browser gives the focus back to where it was.
 */
export function openDialog(
  title: string,
  testid: string,
  body: HTMLElement,
  closed: () => void = () => {},
): Dialog {
  const el = h("dialog", { class: "dialog", testid, label: title });
  const close = () => el.close();
  el.append(
    h(
      "header",
      {},
      h("h2", { text: title }),
      button({ class: "icon-button", label: "Close", testid: "dialog-close", on: { click: close } }, icon("x")),
    ),
    body,
  );
  el.addEventListener("close", () => {
    el.remove();
    closed();
  });
  // Pressed and released on the backdrop: a selection that ends there is no click.
  let downOutside = false;
  el.addEventListener("pointerdown", (e) => (downOutside = e.target === el));
  el.addEventListener("click", (e) => {
    if (e.target === el && downOutside) close();
  });
  document.body.append(el);
  el.showModal();
  return { el, close };
}

/** A question; resolves to false when it is dismissed in any way. */
export function ask(title: string, text: string, yes: string): Promise<boolean> {
  return new Promise((resolve) => {
    let answer = false;
    const confirm = button({
      class: "danger",
      testid: "confirm",
      text: yes,
      on: {
        click: () => {
          answer = true;
          d.close();
        },
      },
    });
    const cancel = button({ testid: "cancel", text: "Cancel", on: { click: () => d.close() } });
    const d = openDialog(
      title,
      "question",
      h("div", { class: "dialog-body" }, h("p", { text }), h("div", { class: "dialog-buttons" }, cancel, confirm)),
      () => resolve(answer),
    );
    confirm.focus();
  });
}
