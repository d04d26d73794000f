// The reference terminal of the tests: @xterm/headless with the Unicode addon
// that the page activates. It reads one case a line from standard input and
// writes one answer a line:
//
//   {"ops":[["n"|"N",t,cols,rows,scrollback],["w",t,base64],["z",t,cols,rows],
//           ["d",t],["c",t,u],["W",from,to]]}
//   → {"out":[…]}   one entry for each d (a state), c (null when the two are
//     equal, else both states) and W (widths of code points); "threw" lists
//     the exceptions of xterm.js.
//
// argv[2] is the directory whose node_modules hold the packages.
"use strict";
const { createRequire } = require("node:module");
const path = require("node:path");
const load = createRequire(path.join(path.resolve(process.argv[2]), "package.json"));
const { Terminal } = load("@xterm/headless");
const { Unicode11Addon } = load("@xterm/addon-unicode11");

const UNDERLINE = 0x10000000; // of fg
const HAS_EXTENDED = 0x10000000; // of bg; what it says is seen by the rest

/** The names of the character sets, by identity: xterm.js does not export them. */
const charsetNames = new Map([[undefined, "B"]]);
{
  const t = new Terminal({ allowProposedApi: true });
  for (const c of "0A45RQKY6Z7=") {
    t._core._inputHandler.selectCharset("(" + c);
    charsetNames.set(t._core._charsetService.charset, c);
  }
  t.dispose();
}

/** Terminals "as delivered" are left alone by what is put right below. */
let raw = false;

{
  const { _core } = new Terminal({ allowProposedApi: true });
  const lines = _core._bufferService.buffer.lines;

  const line = Object.getPrototypeOf(lines.get(0));

  // A screen of one line without scrollback gives the line that goes out back as
  // the new one, while the text that scrolled it still writes into the old one.
  const list = Object.getPrototypeOf(lines);
  const recycle = list.recycle;
  list.recycle = function () {
    const line = recycle.call(this);
    if (raw || this.maxLength > 1) return line;
    const fresh = line.clone();
    this.set(this.length - 1, fresh);
    return fresh;
  };

  // Lines that a narrower screen makes more of, and that a full list has no room
  // for, are put before its first line, which is its last one in the ring.
  const set = list.set;
  list.set = function (i, line) {
    if (raw || i >= 0) set.call(this, i, line);
  };

  // The texts of combined characters are moved one after the other, over those
  // that are still to be moved.
  const copy = line.copyCellsFrom;
  line.copyCellsFrom = function (src, from, to, length, reverse) {
    if (raw) return copy.call(this, src, from, to, length, reverse);
    const texts = { ...src._combined };
    const mine = { ...this._combined };
    copy.call(this, src, from, to, length, reverse);
    this._combined = mine;
    for (let i = 0; i < length; i++) {
      if (texts[from + i] !== undefined) this._combined[to + i] = texts[from + i];
    }
  };

  // A cell holds any number of combining characters; the emulator stops at 64 bytes.
  const add = line.addCodepointToCell;
  line.addCodepointToCell = function (x, code, width) {
    const before = this._combined[x];
    add.call(this, x, code, width);
    if (!raw && before !== undefined && Buffer.byteLength(this._combined[x]) > 64) this._combined[x] = before;
  };
}

/** How many bytes at the end begin a character of UTF-8 that is not whole. */
function openCharacter(bytes) {
  for (let n = 1; n <= 3 && n <= bytes.length; n++) {
    const b = bytes[bytes.length - n];
    if ((b & 0xc0) === 0x80) continue;
    const need = (b & 0xe0) === 0xc0 ? 2 : (b & 0xf0) === 0xe0 ? 3 : (b & 0xf8) === 0xf0 ? 4 : 1;
    return need > n ? n : 0;
  }
  return 0;
}

/**
 * A packed colour without the bits that mean nothing: a colour of the palette
 * has the rest of a true colour in them that was there before.
 */
function colour(c) {
  switch (c & 0x3000000) {
    case 0x3000000: return c >>> 0;
    case 0: return (c & ~0xffffff) >>> 0;
    default: return (c & ~0xffff00) >>> 0;
  }
}

/**
 * Style and colour of an underline as they are seen. DECRC restores the flags
 * but not what they stand for, so both may be left of something else.
 */
function underline(fg, bg, ext) {
  if (!(fg & UNDERLINE)) return [0, 0];
  if (!(bg & HAS_EXTENDED) || !ext) return [1, 0];
  return [(ext._ext >>> 26 & 7) || 1, colour(ext.underlineColor)];
}

class Reference {
  constructor(cols, rows, scrollback, raw) {
    this.threw = [];
    this.replies = "";
    this.held = Buffer.alloc(0);
    const t = new Terminal({ cols, rows, scrollback, allowProposedApi: true, logLevel: "off" });
    t.loadAddon(new Unicode11Addon());
    t.unicode.activeVersion = "11";
    t.onData((s) => (this.replies += s));
    this.term = t;
    this.core = t._core;
    this.raw = raw;
    this.catchExceptions();
    if (raw) return;
    this.eraseAbove();
    this.keepLinks();
    this.clampCounts();
    this.printSingly();
  }

  /**
   * xterm.js looks for the half of a wide character only where a run of text
   * begins, so where the cursor can get into one within a run (no wraparound,
   * last column) its result depends on how the bytes were cut. Here every
   * character is a run.
   */
  printSingly() {
    const h = this.core._inputHandler;
    const print = h.print.bind(h);
    const { buffers } = this.core._bufferService;
    const singly = (data, start, end) => {
      for (let i = start; i < end; i++) {
        const b = buffers.active;
        const last = this.term.cols - 1;
        const atEdge = b.x >= last && !this.core.coreService.decPrivateModes.wraparound;
        print(data, i, i + 1);
        // A wide character that had no room was not printed, and nothing joins it.
        if (atEdge && b.x === last && this.core.unicodeService.wcwidth(data[i]) === 2) h._parser.precedingJoinState = 0;
      }
    };
    h._parser.setPrintHandler(singly);
    h.print = singly;
  }

  /** As the page does it: see web/src/term/robust.ts. */
  catchExceptions() {
    const h = this.core._inputHandler;
    const parse = h.parse.bind(h);
    h.parse = (data) => {
      try {
        return parse(data);
      } catch (e) {
        h._parser.reset();
        this.threw.push(String(e && e.message));
      }
    };
  }

  /** The page does this too. */
  eraseAbove() {
    const h = this.core._inputHandler;
    const erase = (params, respect) => {
      const b = this.core._bufferService.buffer;
      if (params[0] !== 1 || b.x + 1 < this.term.cols) return false;
      h.eraseInLine({ params: [2], length: 1 }, respect);
      for (let y = 0; y < b.y; y++) h._resetBufferLine(y, respect);
      if (b.y + 1 < this.term.rows) b.lines.get(b.ybase + b.y + 1).isWrapped = false;
      return true;
    };
    this.term.parser.registerCsiHandler({ final: "J" }, (p) => erase(p, false));
    this.term.parser.registerCsiHandler({ prefix: "?", final: "J" }, (p) => erase(p, true));
  }

  /**
   * xterm.js forgets a link when the lines on which it was written are gone,
   * though cells moved elsewhere still carry its number. Comparing needs the URI.
   */
  keepLinks() {
    this.core._oscLinkService._removeMarkerFromLink = () => {};
  }

  /**
   * These count in loops up to 2^31, for minutes; beyond the size of the screen
   * another turn changes nothing.
   */
  clampCounts() {
    const h = this.core._inputHandler;
    const wrap = (name, most) => {
      const f = h[name].bind(h);
      h[name] = (p) => f(p.params[0] > most() ? { params: [most()], length: 1 } : p);
    };
    const rows = () => this.term.rows + 1;
    const cols = () => this.term.cols + 1;
    // Repeating can fill the scrollback: the emulator stops at a full screen.
    wrap("repeatPrecedingCharacter", () => Math.min(2 * this.term.rows * this.term.cols, 16384));
    for (const n of ["scrollUp", "scrollDown", "insertLines", "deleteLines"]) wrap(n, rows);
    for (const n of ["cursorForwardTab", "cursorBackwardTab"]) wrap(n, cols);
  }

  /**
   * xterm.js loses a character that is cut after a byte 0x80, as of most quotes
   * and dashes (E2 80 xx). The begin of an open one waits here, as in the page.
   */
  write(bytes) {
    if (this.raw) return this.writeRaw(bytes);
    if (this.held.length) bytes = Buffer.concat([this.held, bytes]);
    const whole = bytes.length - openCharacter(bytes);
    this.held = bytes.subarray(whole);
    this.writeRaw(bytes.subarray(0, whole));
  }

  writeRaw(bytes) {
    if (bytes.length) this.core._writeBuffer.writeSync(bytes);
  }

  /**
   * xterm.js leaves the lines of the alternate screen as long as they were when
   * it becomes narrower, and shows what is beyond the edge when it is widened.
   */
  resize(cols, rows) {
    const same = cols === this.term.cols && rows === this.term.rows;
    this.term.resize(cols, rows);
    if (this.raw || same) return;
    // What stands before the cursor may be another character.
    this.core._inputHandler._parser.precedingJoinState = 0;
    const { normal, alt } = this.core._bufferService.buffers;
    // While it is hidden the alternate screen keeps the length of its list, and
    // gets a scrollback when it became smaller.
    if (alt.lines.length === 0) alt.lines.maxLength = this.term.rows;
    for (const b of [normal, alt]) {
      // A saved cursor below a smaller screen would come up again by scrolling.
      b.savedY = Math.min(b.savedY, b.ybase + this.term.rows - 1);
      for (let i = 0; i < b.lines.length; i++) {
        const l = b.lines.get(i);
        if (b === alt && l.length > cols) l.resize(cols, alt.getNullCell());
        // A wide character that was cut in two.
        if (l.getWidth(cols - 1) === 2) l.setCell(cols - 1, b.getNullCell());
      }
    }
  }

  linkOf(ext) {
    const id = ext ? ext.urlId : 0;
    if (!id) return "";
    const d = this.core._oscLinkService.getLinkData(id);
    return d ? d.uri : "?" + id;
  }

  line(l, cols) {
    const data = l._data;
    const cells = [];
    let last = null;
    for (let x = 0; x < cols; x++) {
      const content = data[x * 3];
      const fg = data[x * 3 + 1];
      const bg = data[x * 3 + 2];
      const combined = (content & 0x200000) !== 0;
      const ext = (bg & HAS_EXTENDED) !== 0 ? l._extendedAttrs[x] : undefined;
      if (last && content === last.content && fg === last.fg && bg === last.bg && !combined && !ext && !last.ext) {
        last.cell[7]++;
        continue;
      }
      const code = content & 0x1fffff;
      const chars = combined ? l._combined[x] : code ? String.fromCodePoint(code) : "";
      const cell = [
        chars, content >>> 22 & 3, colour(fg), colour(bg & ~HAS_EXTENDED),
        ...underline(fg, bg, ext), ext ? this.linkOf(ext) : "", 1,
      ];
      const p = last && last.cell;
      if (p && p[0] === cell[0] && p[1] === cell[1] && p[2] === cell[2] && p[3] === cell[3] &&
          p[4] === cell[4] && p[5] === cell[5] && p[6] === cell[6]) {
        p[7]++;
        last.content = content;
        last.ext = ext;
        continue;
      }
      // A combined cell is never the base of the quick comparison above.
      last = { content: combined ? -1 : content, fg, bg, ext, cell };
      cells.push(cell);
    }
    return { w: l.isWrapped ? 1 : 0, c: cells };
  }

  buffer(b) {
    const cols = this.term.cols;
    const lines = [];
    for (let i = 0; i < b.lines.length; i++) lines.push(this.line(b.lines.get(i), cols));
    const tabs = [];
    for (let x = 0; x < cols; x++) if (b.tabs[x]) tabs.push(x);
    return {
      x: b.x, y: b.y, ybase: b.ybase, top: b.scrollTop, bottom: b.scrollBottom,
      savedX: b.savedX, savedY: b.savedY,
      savedFg: colour(b.savedCurAttrData.fg), savedBg: colour(b.savedCurAttrData.bg & ~HAS_EXTENDED),
      savedCharset: charsetNames.get(b.savedCharset), tabs, lines,
    };
  }

  state() {
    const c = this.core;
    const bufs = c._bufferService.buffers;
    const alt = bufs.active === bufs.alt;
    const pen = c._inputHandler._curAttrData;
    const m = c.coreService.decPrivateModes;
    const cs = c._charsetService;
    return {
      cols: this.term.cols, rows: this.term.rows, alt,
      normal: this.buffer(bufs.normal),
      alternate: alt ? this.buffer(bufs.alt) : null,
      pen: {
        fg: colour(pen.fg), bg: colour(pen.bg & ~HAS_EXTENDED),
        // What the pen remembers is used again when an underline begins.
        us: underline(pen.fg, pen.bg, pen.extended)[0], uc: colour(pen.extended.underlineColor), link: this.linkOf(pen.extended),
      },
      gl: cs.glevel,
      g: [0, 1, 2, 3].map((i) => charsetNames.get(cs._charsets[i])),
      modes: {
        insert: c.coreService.modes.insertMode, convertEol: c.optionsService.rawOptions.convertEol,
        appCursor: m.applicationCursorKeys, appKeypad: m.applicationKeypad, bracketedPaste: m.bracketedPasteMode,
        origin: m.origin, reverseWrap: m.reverseWraparound, sendFocus: m.sendFocus, wrap: m.wraparound,
        sync: m.synchronizedOutput, cursorHidden: c.coreService.isCursorHidden,
        cursorStyle: m.cursorStyle ?? "", cursorBlink: m.cursorBlink ?? null,
        mouse: c.coreMouseService.activeProtocol, mouseEnc: c.coreMouseService.activeEncoding,
      },
      title: c._inputHandler._windowTitle,
      join: c._inputHandler._parser.precedingJoinState >> 1 & 3,
      cs: charsetNames.get(cs.charset),
      blink12: c.optionsService.rawOptions.cursorBlink,
      replies: this.replies,
    };
  }
}

function run(request) {
  const terms = [];
  const out = [];
  for (const op of request.ops) {
    const t = terms[op[1]];
    raw = op[0] === "N" || t !== undefined && t.raw;
    switch (op[0]) {
      case "n":
        terms[op[1]] = new Reference(op[2], op[3], op[4], false);
        break;
      case "N": // as it is delivered, without what is put right here
        terms[op[1]] = new Reference(op[2], op[3], op[4], true);
        break;
      case "L": { // how many lines are taken out or put in for these bytes
        let n = 0;
        const lines = t.core._bufferService.buffer.lines;
        const splice = lines.splice.bind(lines);
        lines.splice = (...a) => (n++, splice(...a));
        t.write(Buffer.from(op[2], "base64"));
        out.push(n);
        break;
      }
      case "w":
        t.write(Buffer.from(op[2], "base64"));
        break;
      case "z":
        t.resize(op[2], op[3]);
        break;
      case "d":
        out.push(t.state());
        break;
      case "r": // from here on, replies count anew
        t.replies = "";
        break;
      case "c": {
        const a = t.state();
        const b = terms[op[2]].state();
        const equal = JSON.stringify(a) === JSON.stringify(b);
        out.push(equal ? null : [a, b]);
        break;
      }
      case "W": {
        const u = new Reference(80, 24, 0, true).core.unicodeService;
        const widths = [];
        for (let cp = op[1]; cp < op[2]; cp++) widths.push(u.wcwidth(cp));
        out.push(widths.join(""));
        break;
      }
      default:
        throw new Error("unknown op " + op[0]);
    }
  }
  const threw = [];
  for (const t of terms) if (t) { threw.push(...t.threw); t.term.dispose(); }
  return { out, threw };
}

let pending = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  pending += chunk;
  let answers = "";
  for (;;) {
    const end = pending.indexOf("\n");
    if (end < 0) break;
    const line = pending.slice(0, end);
    pending = pending.slice(end + 1);
    let answer;
    try {
      answer = run(JSON.parse(line));
    } catch (e) {
      answer = { error: String(e && e.stack) };
    }
    answers += JSON.stringify(answer) + "\n";
  }
  if (answers) process.stdout.write(answers);
});
process.stdin.on("end", () => process.exit(0));
