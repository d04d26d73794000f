/** Frame types of ptyd.v1. The numbers are frozen by golden vectors. */
export const T = {
  HELLO: 0x01,
  ATTACH: 0x02,
  ATTACHED: 0x03,
  DETACH: 0x04,
  DETACHED: 0x05,
  VIEW: 0x06,
  CLAIM: 0x07,
  SIGNAL: 0x08,
  SIZE: 0x09,
  EXIT: 0x0a,
  EVENT: 0x0b,
  PING: 0x0c,
  PONG: 0x0d,
  GOODBYE: 0x0e,
  VIEWERS: 0x0f,
  OUTPUT: 0x20,
  INPUT: 0x21,
  INPUT_ACK: 0x22,
  ACK: 0x23,
  SNAPSHOT: 0x24,
  RESYNC: 0x25,
} as const;

export const SUBPROTOCOL = "ptyd.v1";

/** A receiver that does not know the type skips the frame. */
export const FLAG_OPTIONAL = 1;
/** The last chunk of a SNAPSHOT. */
export const FLAG_END = 2;

export const HEADER = 16;
export const MAX_PAYLOAD = 65536;
/** Input bytes that may be on their way without an acknowledgement. */
export const INPUT_WINDOW = 65536;

export interface ServerHello {
  version: number;
  build: string;
  max_frame: number;
  capabilities?: string[];
  user: string;
  role: string;
  ping_ms: number;
}

export interface Attach {
  session: string;
  epoch?: string;
  have_offset?: number;
  cols: number;
  rows: number;
  visible: boolean;
  kind: "interactive" | "preview";
  read_only?: boolean;
  input_offset: number;
  tail?: number;
}

export interface Attached {
  session: string;
  epoch: string;
  mode: "delta" | "snapshot";
  offset: number;
  /** What the session had written when it was attached: all below is replay. */
  head: number;
  cols: number;
  rows: number;
  state: string;
  owner: string;
  you: boolean;
  read_only: boolean;
  truncated_from: number;
  skipped?: number;
  input_offset: number;
  window: number;
  name: string;
  format?: string;
}

export interface Size {
  cols: number;
  rows: number;
  owner: string;
  you: boolean;
}

export interface Exit {
  code: number | null;
  signal: string | null;
  state: string;
}

export interface Farewell {
  code: number;
  reason: string;
  retry: boolean;
}

export interface Event {
  type: string;
  id: string;
}
