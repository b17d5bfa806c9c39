// The board as one SVG, built once per size and then updated. Squares are a grid for the keyboard and screen readers.

import { joined, words } from "./language.js";
import { indexOf, nameOf } from "../game/rules.js";

const SVG = "http://www.w3.org/2000/svg";
const UNIT = 100;
const RIM = 5.25; // per row of the board
const COLUMNS = "abcdefgh";
const SQUARES = { X: "square.black", O: "square.white", "-": "square.empty" };
export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

export function element(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export class BoardView {
  constructor(host, { onPlay, onHover }) {
    Object.assign(this, { host, onPlay, onHover, size: 0, focused: 0, turned: Promise.resolve() });
  }

  // The view: {size, board, turn, legal, last, playable, values: {name: text}, best, hint}
  show(view, { animate = true } = {}) {
    if (view.size !== this.size) this.#build(view.size);
    const before = this.board ?? "";
    this.board = view.board;
    this.view = view;
    const moving = animate && !reducedMotion.matches && before.length === view.board.length;
    const turns = [...view.board].map((_, index) => this.#update(index, before[index], moving)).filter(Boolean);
    if (turns.length) this.turned = Promise.all(turns); // resolved when all discs have turned
    this.svg.setAttribute("aria-label", words("board.label", { size: view.size }));
    this.svg.dataset.turn = view.turn;
    this.svg.classList.toggle("playable", Boolean(view.playable));
    this.svg.classList.toggle("editing", Boolean(view.editing));
  }

  #build(size) {
    this.size = size;
    this.board = "";
    const rim = size * RIM, extent = size * UNIT + 2 * rim;
    const svg = element("svg", { viewBox: `0 0 ${extent} ${extent}`, role: "grid" });
    svg.append(definitions(), element("rect", { class: "frame", width: extent, height: extent }));
    const field = element("g", { transform: `translate(${rim} ${rim})`, role: "presentation" });
    const side = size * UNIT;
    field.append(element("rect", { class: "felt", width: side, height: side, rx: 4 }));
    let lines = "";
    for (let i = 1; i < size; i++) lines += `M${i * UNIT} 0V${side}M0 ${i * UNIT}H${side}`;
    field.append(element("path", { class: "lines", d: lines }), ...stars(size), ...labels(size));
    this.squares = [];
    for (let row = 0; row < size; row++) {
      const group = element("g", { role: "row" });
      for (let column = 0; column < size; column++) group.append(this.#square(row, column));
      field.append(group);
    }
    svg.append(field);
    svg.addEventListener("keydown", (event) => this.#key(event));
    this.svg = svg;
    this.host.replaceChildren(svg);
    this.#setFocused(Math.floor(size / 2 - 1) * size + size / 2 - 1, false);
  }

  #square(row, column) {
    const index = row * this.size + column;
    const name = nameOf(index, this.size);
    const cell = element("g", {
      role: "gridcell", class: "square", tabindex: -1, "data-square": name, transform: `translate(${column * UNIT} ${row * UNIT})`,
    });
    const area = element("rect", { class: "area", width: UNIT, height: UNIT });
    const shadow = element("circle", { class: "shadow", cx: 52, cy: 56, r: 41 });
    const circle = (kind, r) => element("circle", { class: kind, cx: 50, cy: 50, r });
    const disc = element("g", { class: "piece" }, circle("body", 41), circle("face", 34));
    const chip = element("rect", { class: "chip", x: 7, y: 29, width: 86, height: 42, rx: 12 });
    const value = element("text", { class: "worth", x: 50, y: 59.5 });
    const outline = element("rect", { class: "outline", x: 4, y: 4, width: UNIT - 8, height: UNIT - 8, rx: 8 });
    cell.append(area, shadow, disc, circle("mark", 11), circle("ring", 10), chip, value, outline);
    cell.addEventListener("click", () => this.#choose(index));
    cell.addEventListener("pointerenter", () => this.onHover(name));
    cell.addEventListener("pointerleave", () => this.onHover(null));
    cell.addEventListener("focus", () => { this.#setFocused(index, false); this.onHover(name); });
    this.squares[index] = { cell, disc, value, name };
    return cell;
  }

  #update(index, before, moving) {
    const { cell, disc, value, name } = this.squares[index];
    const now = this.view.board[index];
    const legal = this.view.legal.includes(name);
    const last = this.view.last === name;
    cell.classList.toggle("legal", legal);
    cell.classList.toggle("last", last);
    cell.classList.toggle("best", this.view.best === name);
    cell.classList.toggle("hint", this.view.hint === name);
    const worth = this.view.values?.[name];
    value.textContent = worth?.text ?? "";
    cell.classList.toggle("valued", Boolean(worth));
    if (worth) value.dataset.grade = worth.grade; else delete value.dataset.grade;
    const label = [name, words(SQUARES[now]), last && words("square.last"), legal && this.view.playable && words("square.legal")];
    cell.setAttribute("aria-label", joined([...label, worth && words("square.value", { value: worth.text })]));
    if (before === now) return; // its animation may still run
    if (!moving || now === "-" || !before) settle(disc, now);
    else if (before === "-") appear(disc, now);
    else return flip(disc, before, now, this.#delay(index));
  }

  // Discs turn one after the other, away from the move; this is the delay in milliseconds.
  #delay(index) {
    const { last } = this.view;
    if (!last || last === "pass") return 0;
    const from = indexOf(last, this.size);
    const rows = Math.abs(Math.floor(from / this.size) - Math.floor(index / this.size));
    return 70 * Math.max(rows, Math.abs((from % this.size) - (index % this.size)));
  }

  focus() {
    this.squares[this.focused].cell.focus({ preventScroll: true });
  }

  #choose(index) {
    this.#setFocused(index, true);
    if (this.view.playable || this.view.editing) this.onPlay(this.squares[index].name);
  }

  #setFocused(index, move) {
    this.squares[this.focused]?.cell.setAttribute("tabindex", -1);
    this.focused = index;
    this.squares[index].cell.setAttribute("tabindex", 0);
    if (move) this.squares[index].cell.focus({ preventScroll: true });
  }

  #key(event) {
    const { size } = this;
    const row = Math.floor(this.focused / size), column = this.focused % size;
    const targets = {
      ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
      Home: [row, 0], End: [row, size - 1], PageUp: [0, column], PageDown: [size - 1, column],
    };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in targets) {
      const [toRow, toColumn] = targets[event.key].map((n) => Math.min(size - 1, Math.max(0, n)));
      this.#setFocused(toRow * size + toColumn, true);
    } else if (event.key === "Enter" || event.key === " ") this.#choose(this.focused);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function settle(disc, now) {
  for (const animation of disc.getAnimations()) animation.cancel();
  disc.dataset.to = disc.dataset.disc = now;
}

function appear(disc, now) {
  settle(disc, now);
  disc.animate([{ transform: "scale(.6)", opacity: 0 }, { transform: "scale(1)", opacity: 1 }], { duration: 160, easing: "ease-out" });
}

async function flip(disc, before, now, delay) {
  disc.dataset.disc = before;
  disc.dataset.to = now;
  const options = { duration: 120, delay, easing: "ease-in", fill: "backwards" };
  try {
    await disc.animate([{ transform: "scaleX(1)" }, { transform: "scaleX(0)" }], options).finished;
  } catch { /* cancelled by a later change */ }
  if (disc.dataset.to !== now) return;
  disc.dataset.disc = now;
  const opening = disc.animate([{ transform: "scaleX(0)" }, { transform: "scaleX(1)" }], { duration: 140, easing: "ease-out" });
  await opening.finished.catch(() => {});
}

function definitions() {
  const gradient = (id, colour, place, inner = 0) => element("radialGradient", { id, ...place },
    element("stop", { class: `${colour}-inner`, offset: inner }), element("stop", { class: `${colour}-outer`, offset: 1 }));
  const lit = { cx: 0.36, cy: 0.3, r: 0.85 };
  return element("defs", {}, gradient("disc-black", "black", lit), gradient("disc-white", "white", lit),
    gradient("felt", "felt", { cx: 0.4, cy: 0.3, r: 1 }), gradient("shade", "shade", {}, 0.75));
}

function stars(size) {
  if (size < 6) return [];
  const near = 2 * UNIT, far = (size - 2) * UNIT;
  return [[near, near], [near, far], [far, near], [far, far]].map(([cx, cy]) => element("circle", { class: "star", cx, cy, r: 6 }));
}

function labels(size) {
  const texts = [];
  for (let i = 0; i < size; i++) {
    const at = i * UNIT + UNIT / 2;
    const hidden = { class: "label", "aria-hidden": "true", "font-size": RIM * size / 2 };
    texts.push(element("text", { ...hidden, x: at, y: -1.625 * size }, COLUMNS[i]), element("text", { ...hidden, x: -2.75 * size, y: at + size }, i + 1));
  }
  return texts;
}
