/** A finger that moved less than this meant a tap. */
const SLOP = 8;
/** xterm.js moves 1.25 pixels for one of a wheel's. */
const WHEEL = 0.8;

/**
 * xterm.js scrolls by wheel only. A drag on a touch screen becomes wheel
 * events, so that scrollback, pagers (arrow keys) and programs that follow the
 * mouse each get what a wheel would give them; a flick runs out.
 */
export function scrollByTouch(host: HTMLElement): void {
  let last = 0;
  let start: { x: number; y: number } | null = null;
  let dragging = false;
  let speed = 0;
  let at = 0;
  let flight = 0;

  const wheel = (dy: number, x: number, y: number) => {
    const deltaY = dy * WHEEL;
    const e = new WheelEvent("wheel", { deltaY, clientX: x, clientY: y, bubbles: true, cancelable: true });
    // The older property, which xterm.js prefers, is 0 in an event of one's own.
    Object.defineProperty(e, "wheelDeltaY", { value: -3 * deltaY });
    host.querySelector(".xterm-screen")?.dispatchEvent(e);
  };

  host.addEventListener(
    "touchstart",
    (e) => {
      cancelAnimationFrame(flight);
      const t = e.touches[0]!;
      start = e.touches.length === 1 ? { x: t.clientX, y: t.clientY } : null;
      last = t.clientY;
      dragging = false;
      speed = 0;
    },
    { passive: true },
  );
  host.addEventListener(
    "touchmove",
    (e) => {
      const t = e.touches[0]!;
      if (!start || e.touches.length !== 1) return;
      if (!dragging && Math.abs(t.clientY - start.y) < SLOP) return;
      dragging = true;
      e.preventDefault();
      const dy = last - t.clientY;
      const now = performance.now();
      speed = dy / Math.max(1, now - at);
      at = now;
      last = t.clientY;
      wheel(dy, t.clientX, t.clientY);
    },
    { passive: false },
  );
  host.addEventListener("touchend", (e) => {
    if (!dragging || !start) return;
    // A drag is no click.
    e.preventDefault();
    dragging = false;
    const from = start;
    if (performance.now() - at > 60 || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    let before = performance.now();
    const fly = (now: number) => {
      const dt = now - before;
      before = now;
      speed *= Math.exp(-dt / 325);
      if (Math.abs(speed) < 0.02) return;
      wheel(speed * dt, from.x, from.y);
      flight = requestAnimationFrame(fly);
    };
    flight = requestAnimationFrame(fly);
  });
}
