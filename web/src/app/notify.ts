/** Notices of the desktop: only for a page that is not seen, only when asked for. */
export const canNotify = (): boolean => typeof Notification !== "undefined" && isSecureContext;

/** Must be called from a click. */
export async function askToNotify(): Promise<boolean> {
  if (!canNotify()) return false;
  if (Notification.permission === "granted") return true;
  return (await Notification.requestPermission()) === "granted";
}

export function notify(title: string, body: string, tag: string, clicked: () => void): void {
  if (!canNotify() || Notification.permission !== "granted") return;
  try {
    const n = new Notification(title, { body, tag });
    n.onclick = () => {
      window.focus();
      n.close();
      clicked();
    };
  } catch {
    // Some browsers allow notices only from service workers.
  }
}

let audio: AudioContext | null = null;

/** A short, soft tone; browsers allow it after the first key or click. */
export function beep(): void {
  try {
    audio ??= new AudioContext();
    const t = audio.currentTime;
    const gain = audio.createGain();
    gain.gain.setValueAtTime(0.08, t);
    gain.gain.exponentialRampToValueAtTime(0.0001, t + 0.15);
    const tone = audio.createOscillator();
    tone.frequency.value = 660;
    tone.connect(gain).connect(audio.destination);
    tone.start(t);
    tone.stop(t + 0.15);
  } catch {
    // no sound here
  }
}
