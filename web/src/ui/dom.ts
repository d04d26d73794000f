type Child = Node | string | null | undefined | false;

interface Props {
  class?: string;
  testid?: string;
  /** aria-label and, for buttons, the tooltip. */
  label?: string;
  title?: string;
  text?: string;
  attrs?: Record<string, string>;
  data?: Record<string, string>;
  on?: { [K in keyof HTMLElementEventMap]?: (e: HTMLElementEventMap[K]) => void };
}

/** Makes an element; text is always text, never markup. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  if (props.class) el.className = props.class;
  if (props.testid) el.dataset.testid = props.testid;
  if (props.label) el.setAttribute("aria-label", props.label);
  const title = props.title ?? (tag === "button" ? props.label : undefined);
  if (title) el.title = title;
  if (props.text !== undefined) el.textContent = props.text;
  for (const [k, v] of Object.entries(props.attrs ?? {})) el.setAttribute(k, v);
  for (const [k, v] of Object.entries(props.data ?? {})) el.dataset[k] = v;
  for (const [k, f] of Object.entries(props.on ?? {})) el.addEventListener(k, f as EventListener);
  for (const c of children) if (c) el.append(c);
  return el;
}

/** A button; `type=button` because those in forms would submit. */
export function button(props: Props, ...children: Child[]): HTMLButtonElement {
  const b = h("button", props, ...children);
  b.type = "button";
  return b;
}

export function setText(el: HTMLElement, text: string): void {
  if (el.textContent !== text) el.textContent = text;
}

export function setData(el: HTMLElement, key: string, value: string | null): void {
  if (value === null) delete el.dataset[key];
  else if (el.dataset[key] !== value) el.dataset[key] = value;
}

/** Puts `wanted` into `parent` in order, moving only what is out of place. */
export function arrange(parent: HTMLElement, wanted: HTMLElement[]): void {
  const keep = new Set<Element>(wanted);
  for (const c of [...parent.children]) if (!keep.has(c)) c.remove();
  let at = parent.firstElementChild;
  for (const el of wanted) {
    if (el === at) at = at.nextElementSibling;
    else parent.insertBefore(el, at);
  }
}
