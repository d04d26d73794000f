import { button, h } from "./dom";

export interface MenuItem {
  action: string;
  label: string;
  key?: string;
  disabled?: boolean;
  danger?: boolean;
  run: () => void;
}

/** A menu below `anchor`; arrows move, Escape and a click elsewhere close it. */
export function openMenu(anchor: HTMLElement, items: (MenuItem | "line")[]): void {
  const before = document.activeElement;
  const menu = h("div", { class: "menu", attrs: { role: "menu" } });
  const close = (refocus: boolean) => {
    removeEventListener("pointerdown", outside, true);
    removeEventListener("blur", lost);
    menu.remove();
    anchor.setAttribute("aria-expanded", "false");
    if (refocus && before instanceof HTMLElement) before.focus({ preventScroll: true });
  };
  const outside = (e: Event) => {
    if (!menu.contains(e.target as Node)) close(false);
  };
  const lost = () => close(false);
  for (const i of items) {
    if (i === "line") {
      menu.append(h("hr"));
      continue;
    }
    const b = button(
      {
        testid: "menu-item",
        data: { action: i.action },
        attrs: { role: "menuitem" },
        class: i.danger ? "danger" : "",
        on: {
          click: () => {
            close(true);
            i.run();
          },
        },
      },
      h("span", { text: i.label }),
      i.key ? h("kbd", { text: i.key }) : null,
    );
    b.disabled = i.disabled ?? false;
    menu.append(b);
  }
  menu.addEventListener("keydown", (e) => {
    e.stopPropagation();
    const all = [...menu.querySelectorAll<HTMLButtonElement>("button:not(:disabled)")];
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[e.key];
    if (to !== undefined) {
      e.preventDefault();
      all[(to + all.length) % all.length]?.focus();
    } else if (e.key === "Escape" || e.key === "Tab") {
      e.preventDefault();
      close(true);
    }
  });
  document.body.append(menu);
  const box = anchor.getBoundingClientRect();
  menu.style.top = `${Math.max(4, Math.min(box.bottom + 4, innerHeight - menu.offsetHeight - 4))}px`;
  menu.style.left = `${Math.max(4, Math.min(box.left, innerWidth - menu.offsetWidth - 4))}px`;
  anchor.setAttribute("aria-expanded", "true");
  addEventListener("pointerdown", outside, true);
  addEventListener("blur", lost);
  menu.querySelector<HTMLButtonElement>("button:not(:disabled)")?.focus();
}
