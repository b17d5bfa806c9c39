// The course of a game: a value per position, in discs for black, upwards if black is ahead. Drawn in pixels, again for each width.

import { element } from "./board.js";
import { MARKS } from "../study/study.js";

const HEIGHT = 132, LEFT = 26, RIGHT = 10, TOP = 8, BOTTOM = 18;

// A value in discs as a share from 0 (white has won) to 1: steep near even, flat far from it.
export const share = (value, size) => 0.5 + 0.5 * Math.tanh(value / (1.6 * size));

export class Chart {
  constructor(host, onChoose) {
    this.svg = element("svg", { height: HEIGHT, "aria-hidden": "true" });
    this.svg.addEventListener("pointerdown", (event) => this.#point(event));
    this.svg.addEventListener("pointermove", (event) => { if (event.buttons) this.#point(event); });
    this.onChoose = onChoose;
    this.count = 1;
    host.replaceChildren(this.svg);
    new ResizeObserver(() => this.#draw()).observe(host);
  }

  // entries: {value (for black) or null, exact, grade} for every position; grade belongs to the move that led to it
  show(entries, cursor, size) {
    this.shown = { entries, cursor, size };
    this.count = Math.max(1, entries.length - 1);
    this.#draw();
  }

  get #width() {
    return this.svg.clientWidth || 300;
  }

  #draw() {
    if (!this.shown) return;
    const { entries, cursor, size } = this.shown, width = this.#width, bottom = HEIGHT - BOTTOM;
    const x = (i) => LEFT + ((width - LEFT - RIGHT) * i) / this.count;
    const y = (value) => TOP + (bottom - TOP) * (1 - share(value, size));
    const nodes = [element("rect", { class: "back", x: LEFT, y: 0, width: width - LEFT, height: bottom + TOP, rx: 6 })];
    const exact = entries.findIndex((entry) => entry.exact);
    if (exact >= 0) nodes.push(element("rect", { class: "exact", x: x(exact), width: width - x(exact), height: bottom + TOP }));
    for (const run of runs(entries)) nodes.push(...course(run.map(({ i, value }) => [x(i), y(value)]), y(0)));
    nodes.push(...scale(size, width, y), ...plies(this.count, x));
    nodes.push(element("path", { class: "cursor", d: `M${x(cursor)} 0V${bottom + TOP}` }));
    for (const [i, { value, grade }] of entries.entries()) {
      if (value !== null && grade in MARKS) nodes.push(element("circle", { class: `dot ${grade}`, cx: x(i), cy: y(value), r: grade === "blunder" ? 5 : 4 }));
    }
    this.svg.replaceChildren(...nodes);
  }

  #point(event) {
    const across = event.clientX - this.svg.getBoundingClientRect().left - LEFT;
    const at = Math.round((this.count * across) / (this.#width - LEFT - RIGHT));
    this.onChoose(Math.min(this.count, Math.max(0, at)));
  }
}

// The runs of positions with known values; the curve has gaps between them.
function runs(entries) {
  const runs = [[]];
  for (const [i, { value }] of entries.entries()) {
    if (value !== null) runs.at(-1).push({ i, value });
    else if (runs.at(-1).length) runs.push([]);
  }
  return runs.filter((run) => run.length);
}

// A run as a curve, with the areas between it and the middle; a single value as a point.
function course(points, middle) {
  if (points.length === 1) return [element("circle", { class: "lone", cx: points[0][0], cy: points[0][1], r: 2 })];
  const through = points.flatMap(([px, py], i) => {
    const before = points[i - 1];
    if (!before || (before[1] - middle) * (py - middle) >= 0) return [[px, py]];
    return [[before[0] + ((px - before[0]) * (middle - before[1])) / (py - before[1]), middle], [px, py]]; // where it crosses
  });
  const area = (kind, edge) => element("path", { class: kind, d: `M${through[0][0]} ${middle}L${through.map(([px, py]) => `${px} ${edge(py, middle)}`).join("L")}L${through.at(-1)[0]} ${middle}Z` });
  return [area("ahead-black", Math.min), area("ahead-white", Math.max), element("path", { class: "curve", d: `M${points.map((p) => p.join(" ")).join("L")}` })];
}

// Lines and numbers of discs: black's lead above, white's below.
function scale(size, width, y) {
  return [2.5 * size, size, 0, -size, -2.5 * size].flatMap((value) => [
    element("path", { class: value ? "grid" : "zero", d: `M${LEFT} ${y(value)}H${width}` }),
    element("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, Math.abs(value)),
  ]);
}

// The numbers of moves.
function plies(count, x) {
  const step = count > 30 ? 10 : count > 12 ? 5 : 2, ticks = [];
  for (let i = step; i <= count; i += step) ticks.push(element("text", { class: "tick", x: x(i), y: HEIGHT - 2, "text-anchor": "middle" }, i));
  return ticks;
}
