/** Strokes on a 16×16 grid. */
const paths = {
  plus: "M8 3v10M3 8h10",
  x: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5l3.5 3.5L13 4.5",
  pencil: "M3 13l.6-2.6L10.8 3.2a1.3 1.3 0 0 1 2 2L5.6 12.4z",
  stop: "M4.5 4.5h7v7h-7z",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5",
  right: "M2.5 3h11v10h-11zM8 3v10",
  down: "M2.5 3h11v10h-11zM2.5 8h11",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3L14 14",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  gear: "M2.5 4.5h6M12 4.5h1.5M2.5 11.5h2M8 11.5h5.5M10.2 2.8v3.4M6.2 9.8v3.4",
  help: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM6.3 6.4a1.8 1.8 0 1 1 2.5 1.7c-.6.3-.8.6-.8 1.2M8 11.3h.01",
  logout: "M6.5 2.5h-3v11h3M6.5 8H14M11 5l3 3-3 3",
  list: "M2.5 4h11M2.5 8h11M2.5 12h11",
  eye: "M1.5 8S4 3.7 8 3.7 14.5 8 14.5 8 12 12.3 8 12.3 1.5 8 1.5 8zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z",
  up: "M3.5 10L8 5.5l4.5 4.5",
  below: "M3.5 6L8 10.5 12.5 6",
  terminal: "M3 4.5L6.5 8 3 11.5M8.5 12h4.5",
  options: "M4.5 6.5L8 10l3.5-3.5",
  again: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5V5h-2.5",
  bell: "M4 11V7.5a4 4 0 0 1 8 0V11l1.2 1.2H2.8zM6.8 14h2.4",
} as const;

export type IconName = keyof typeof paths;

export function icon(name: IconName): SVGSVGElement {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon icon-" + name);
  svg.setAttribute("aria-hidden", "true");
  const p = document.createElementNS(ns, "path");
  p.setAttribute("d", paths[name]);
  svg.append(p);
  return svg;
}
