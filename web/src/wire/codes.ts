/** What a close or detach code means for this page. */
export interface Verdict {
  /** login: ask for credentials; retry: reconnect; stop: show the reason. */
  next: "login" | "retry" | "stop";
  text: string;
}

const table: Record<number, Verdict> = {
  4400: { next: "stop", text: "The page and the daemon did not understand each other." },
  4401: { next: "login", text: "The login has ended." },
  4403: { next: "stop", text: "Your role does not allow this." },
  4404: { next: "stop", text: "There is no such session." },
  4406: { next: "stop", text: "The daemon speaks another version; reload the page." },
  4408: { next: "retry", text: "The daemon waited too long for the greeting." },
  4409: { next: "stop", text: "The page acknowledged what was never sent." },
  4410: { next: "stop", text: "Typed bytes are missing in between." },
  4411: { next: "stop", text: "The session was removed." },
  4412: { next: "retry", text: "Too many terminals on one connection." },
  4420: { next: "retry", text: "The daemon is stopping or restarting." },
  4421: { next: "retry", text: "The connection went silent." },
  4422: { next: "retry", text: "The connection was set up too slowly." },
};

/** Codes outside the table are the network's own: try again. */
export function verdict(code: number, reason = ""): Verdict {
  const found = table[code];
  if (found) return reason ? { next: found.next, text: sentence(reason) } : found;
  if (code >= 4400 && code <= 4499) {
    return { next: "stop", text: sentence(reason) || `The daemon closed with ${code}.` };
  }
  return { next: "retry", text: "The connection was lost." };
}

export function sentence(s: string): string {
  const t = s.trim();
  if (!t) return "";
  return t[0]!.toUpperCase() + t.slice(1) + (/[.!?…]$/.test(t) ? "" : ".");
}
