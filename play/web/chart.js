// The course of a game: one value a position, in discs for black, upwards if black is ahead.

import { element } from "./board.js";
import { MARKS } from "./study.js";

const WIDTH = 600, HEIGHT = 112, PADDING = 6, MARGIN = 9;

// A value in discs as a share from 0 (white has won) to 1: steep around even, flat far away from it.
export const share = (value, size) => 0.5 + 0.5 * Math.tanh(value / (1.6 * size));

export class Chart {
  constructor(host, onChoose) {
    this.svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.svg.addEventListener("pointerdown", (event) => this.#point(event));
    this.svg.addEventListener("pointermove", (event) => { if (event.buttons) this.#point(event); });
    this.onChoose = onChoose;
    this.count = 1;
    host.replaceChildren(this.svg);
  }

  // entries: {value (for black) or null, exact, grade} for every position; grade belongs to the move that led to it
  show(entries, cursor, size) {
    this.count = Math.max(1, entries.length - 1);
    const x = (i) => MARGIN + ((WIDTH - 2 * MARGIN) * i) / this.count;
    const y = (value) => PADDING + (HEIGHT - 2 * PADDING) * (1 - share(value, size));
    const known = entries.map((entry, i) => ({ ...entry, i })).filter((entry) => entry.value !== null);
    const middle = HEIGHT / 2;
    const nodes = [element("rect", { class: "back", width: WIDTH, height: HEIGHT, rx: 6 })];
    const exact = entries.findIndex((entry) => entry.exact);
    if (exact >= 0) nodes.push(element("rect", { class: "exact", x: x(exact), width: WIDTH - x(exact), height: HEIGHT }));
    if (known.length > 1) {
      const points = known.map((entry) => [x(entry.i), y(entry.value)]);
      nodes.push(area("ahead-black", points.map(([px, py]) => [px, Math.min(py, middle)]), middle));
      nodes.push(area("ahead-white", points.map(([px, py]) => [px, Math.max(py, middle)]), middle));
      nodes.push(element("path", { class: "curve", d: "M" + points.map((p) => p.join(" ")).join("L") }));
    }
    nodes.push(element("path", { class: "zero", d: `M0 ${middle}H${WIDTH}` }));
    nodes.push(element("path", { class: "cursor", d: `M${x(cursor)} 0V${HEIGHT}` }));
    for (const { i, value, grade } of known) {
      if (grade in MARKS) nodes.push(element("ellipse", { class: `dot ${grade}`, cx: x(i), cy: y(value), rx: grade === "blunder" ? 8 : 6, ry: grade === "blunder" ? 5.2 : 4 }));
    }
    this.svg.replaceChildren(...nodes);
  }

  #point(event) {
    const box = this.svg.getBoundingClientRect();
    const across = (WIDTH * (event.clientX - box.left)) / box.width - MARGIN;
    const at = Math.round((this.count * across) / (WIDTH - 2 * MARGIN));
    this.onChoose(Math.min(this.count, Math.max(0, at)));
  }
}

function area(kind, points, middle) {
  const first = points[0], last = points[points.length - 1];
  return element("path", { class: kind, d: `M${first[0]} ${middle}L${points.map((p) => p.join(" ")).join("L")}L${last[0]} ${middle}Z` });
}
