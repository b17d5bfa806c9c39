// The games and reviews of this browser, the latest first.

import { colourName, joined, dateText, words } from "../page/language.js";
import { forget, games, reviews } from "../game/memory.js";
import * as setup from "../game/setup.js";
import { $, node } from "../page/state.js";
import { pairName, resultText } from "../page/words.js";
import { renderOpenings } from "./openings.js";
import { ownText, unlearnt } from "./puzzle.js";

export function renderLibrary() {
  const all = [...games().map(aboutGame), ...reviews().map(aboutReview)].sort((a, b) => b.at - a.at);
  $("library-empty").hidden = all.length > 0;
  $("library-practise").hidden = !unlearnt().length;
  $("library-practise").textContent = ownText("library.practise");
  renderOpenings();
  $("library-list").replaceChildren(...all.map(({ key, href, title, note, at, ended }) => {
    const link = node("a", { href }, node("span", { className: "name" }, title), node("span", { className: "note" }, joined([...note, dateText(at), ended])));
    const button = node("button", { type: "button", className: "quiet", onclick: () => { forget(key); renderLibrary(); $("library-title").focus(); } }, words("library.forget"));
    button.setAttribute("aria-label", words("library.forget-one", { title }));
    return node("li", {}, link, button);
  }));
}

function aboutGame([id, { mode, mine, request, result, at }]) {
  const agents = ["black", "white"].map((colour) => request?.[colour]?.agent).filter(Boolean).map((spec) => {
    const { title, strength } = setup.describe(spec);
    return joined([title, strength]);
  });
  const against = agents.length ? words("library.against", { agent: agents[0] }) : words("library.computer");
  const title = { computer: against, here: words("setup.here"), friend: words("library.friend") }[mode] ?? (agents.join(" – ") || words("library.watched"));
  const rules = request ? [`${request.size}×${request.size}`, request.variant === "reversed" ? words("rules.reversed") : ""] : [];
  const ended = result?.ending ? resultText(result, mode === "here" ? null : mine) : null;
  return { key: `game ${id}`, href: `/#game=${id}`, title, note: [...rules, mine && colourName(mine)], at, ended };
}

function aboutReview([key, { document: { black, white, board }, mine, moves, at }]) {
  const size = Math.sqrt(board.length), named = (name, colour) => name ?? (mine === colour ? words("seat.you") : null);
  const players = pairName(named(black, "black"), named(white, "white"));
  const title = black || white ? words("library.review-of", { players }) : words("library.review");
  return { key: `review ${key}`, href: `/#review=${key}`, title, note: [`${size}×${size}`, words("count.moves", { n: moves })], at };
}
