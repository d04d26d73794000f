import type { ITheme } from "@xterm/xterm";

export const dark: ITheme = {
  background: "#111318",
  foreground: "#d5d9e0",
  cursor: "#d5d9e0",
  cursorAccent: "#111318",
  selectionBackground: "#3b5070",
  selectionInactiveBackground: "#3a4b66",
  scrollbarSliderBackground: "#ffffff1f",
  scrollbarSliderHoverBackground: "#ffffff38",
  scrollbarSliderActiveBackground: "#ffffff4d",
  overviewRulerBorder: "#00000000",
  black: "#262a33",
  red: "#e5686d",
  green: "#86c47c",
  yellow: "#d9b45b",
  blue: "#6ca4ec",
  magenta: "#c290e4",
  cyan: "#62c1c7",
  white: "#c3c8d1",
  brightBlack: "#6b7280",
  brightRed: "#f4898d",
  brightGreen: "#a4da9a",
  brightYellow: "#edcd80",
  brightBlue: "#90bdf6",
  brightMagenta: "#d6b0f2",
  brightCyan: "#88d8dd",
  brightWhite: "#f2f4f8",
};

export const light: ITheme = {
  background: "#ffffff",
  foreground: "#23272e",
  cursor: "#23272e",
  cursorAccent: "#ffffff",
  selectionBackground: "#b8d4f8",
  selectionInactiveBackground: "#d8e3f1",
  scrollbarSliderBackground: "#00000021",
  scrollbarSliderHoverBackground: "#00000038",
  scrollbarSliderActiveBackground: "#0000004d",
  overviewRulerBorder: "#00000000",
  black: "#23272e",
  red: "#b3232d",
  green: "#26722f",
  yellow: "#855b00",
  blue: "#1d5fbf",
  magenta: "#8137ab",
  cyan: "#0c7078",
  white: "#6a717c",
  brightBlack: "#5a616c",
  brightRed: "#cf3640",
  brightGreen: "#2f8a3a",
  brightYellow: "#996a00",
  brightBlue: "#2f74d6",
  brightMagenta: "#9a4bc6",
  brightCyan: "#12848d",
  brightWhite: "#3b414b",
};

/** Marks of the search, in #RRGGBB as the addon wants them. */
export function searchColors(isDark: boolean) {
  return isDark
    ? {
        matchBackground: "#4a4526",
        matchOverviewRuler: "#d9b45b",
        activeMatchBackground: "#8a6d1f",
        activeMatchColorOverviewRuler: "#ffffff",
      }
    : {
        matchBackground: "#fbeab4",
        matchOverviewRuler: "#b78a1c",
        activeMatchBackground: "#f5c542",
        activeMatchColorOverviewRuler: "#23272e",
      };
}
