// The list of moves: the main line in pairs, each with the number of its first move, with comments and variations under each pair.

import { colourName, decimal, currentLanguage, words } from "../page/language.js";
import { $, app, hooks, node, verdictOf } from "../page/state.js";
import { MARKS } from "../study/study.js";
import { pathTo } from "./tree.js";
import { moveName } from "../page/words.js";

// The list is rebuilt only if the moves differ: a button that is replaced between press and release gets no click.
export function renderMoves() {
  const list = $("moves"), { tree, tip } = app.line, main = tip ? pathTo(tip) : tree.line();
  const signature = JSON.stringify([currentLanguage(), tree, main.length]), isOther = list.tree !== tree || list.dataset.signature !== signature;
  const focused = list.contains(document.activeElement);
  if (isOther) {
    list.replaceChildren(...linesOf(main, tip));
    Object.assign(list, { tree }).dataset.signature = signature;
  }
  for (const button of list.querySelectorAll("button")) update(button);
  const current = list.querySelector("[aria-current=true]");
  if (!current || (list.shown === app.here && !isOther)) return;
  list.shown = app.here;
  if (focused) current.focus({ preventScroll: true });
  list.scrollTop += current.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
}

function linesOf([root, ...moves], tip) {
  const items = asides([root], []);
  for (let i = 0; i < moves.length; i += 2) {
    const pair = moves.slice(i, i + 2);
    items.push(node("li", {}, node("span", { className: "number" }, `${i + 1}`), ...pair.map(moveButton)));
    items.push(...asides(pair, pair.flatMap(({ parent }) => parent.children.filter((child) => !pair.includes(child)))));
  }
  return [...items, ...(tip ? asides([], tip.children) : [])];
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
  const { move } = position, name = node("span", { className: move === "pass" ? "pass" : "" }, moveName(move));
  return node("button", { type: "button", position, onclick: () => hooks.goTo(position) }, name, node("span", { className: "grade" }));
}

// Show the verdict on a button's move, and whether its position is on the board.
function update(button) {
  const { position, lastChild } = button, { move, parent } = position, seen = app.analysis ? verdictOf(position) : null;
  const mark = MARKS[seen?.grade] ?? "", label = words("move.label", { colour: colourName(parent.turn), move: moveName(move) });
  const lost = mark && words("count.discs", { n: decimal(seen.loss, seen.exact ? 0 : 1) });
  const title = mark && words("move.graded", { label, grade: words(`grade.${seen.grade}`), lost, best: seen.best });
  if (lastChild.textContent !== mark) lastChild.textContent = mark;
  Object.assign(button, { title }).dataset.grade = mark && seen.grade;
  button.setAttribute("aria-label", title || label);
  button.setAttribute("aria-current", app.here === position);
}
