// The list of moves: the main line in pairs, each with the number of its first move, with comments and variations under each pair.

import { colourName, decimal, spoken, words } from "../page/language.js";
import { $, app, hooks, node, verdictOf } from "../page/state.js";
import { MARKS } from "../study/study.js";
import { pathTo } from "./tree.js";
import { moveName } from "../page/words.js";

export function renderMoves() {
  const list = $("moves"), { tree, tip } = app.line, main = tip ? pathTo(tip) : tree.line();
  const grades = app.analysis ? tree.line(app.here).map((position) => verdictOf(position)?.grade) : [];
  const all = app.analysis ? main.map((position) => verdictOf(position)?.grade) : [];
  const signature = JSON.stringify([spoken(), tree, main.length, pathTo(app.here).map(({ move }) => move), grades, all]);
  if (signature === list.dataset.signature) return;
  list.dataset.signature = signature;
  const focused = list.contains(document.activeElement), [root, ...moves] = main;
  const items = asides([root], []);
  for (let i = 0; i < moves.length; i += 2) {
    const pair = moves.slice(i, i + 2);
    items.push(node("li", {}, node("span", { className: "number" }, `${i + 1}`), ...pair.map(moveButton)));
    items.push(...asides(pair, pair.flatMap(({ parent }) => parent.children.filter((child) => !pair.includes(child)))));
  }
  list.replaceChildren(...items, ...(tip ? asides([], tip.children) : []));
  const current = list.querySelector("[aria-current=true]");
  if (!current) return;
  if (focused) current.focus({ preventScroll: true });
  list.scrollTop += current.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}

// The comments and variations under a pair of moves.
function asides(commented, variations) {
  const remarks = commented.filter(({ comment }) => comment).map(remark);
  const lines = variations.map((head) => node("p", { className: "variation" }, ...variation(head)));
  return remarks.length + lines.length ? [node("li", { className: "aside" }, ...remarks, ...lines)] : [];
}

const remark = ({ comment }) => node("span", { className: "remark" }, comment);

// A variation in a line of text, with its own variations in parentheses.
function variation(head) {
  const parts = [];
  for (let position = head, number = pathTo(head).length - 1; position; [position] = position.children, number++) {
    if (position === head || number % 2) parts.push(node("span", { className: "number" }, `${number}.`));
    parts.push(moveButton(position));
    if (position.comment) parts.push(remark(position));
    const others = position === head ? [] : position.parent.children.slice(1);
    parts.push(...others.map((other) => node("span", { className: "nested" }, ...variation(other))));
  }
  return parts;
}

function moveButton(position) {
  const { move, parent } = position, seen = app.analysis ? verdictOf(position) : null;
  const written = moveName(move), name = node("span", { className: move === "pass" ? "pass" : "" }, written);
  const button = node("button", { type: "button", onclick: () => hooks.goTo(position) }, name);
  button.setAttribute("aria-current", app.here === position);
  let label = words("move.label", { colour: colourName(parent.turn), move: written });
  if (seen && MARKS[seen.grade]) {
    button.append(node("span", { className: "grade" }, MARKS[seen.grade]));
    button.dataset.grade = seen.grade;
    const lost = words("count.discs", { n: decimal(seen.loss, seen.exact ? 0 : 1) });
    label = words("move.graded", { label, grade: words(`grade.${seen.grade}`), lost, best: seen.best });
    button.title = label;
  }
  button.setAttribute("aria-label", label);
  return button;
}
