// The games and reviews of this browser, the latest first.

import { forget, games, reviews } from "./memory.js";
import * as setup from "./setup.js";
import { $, node, plural } from "./state.js";

const when = (at) => new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" }).format(at);

export function renderLibrary() {
  const all = [...games().map(aboutGame), ...reviews().map(aboutReview)].sort((a, b) => b.at - a.at);
  $("library-empty").hidden = all.length > 0;
  $("library-list").replaceChildren(...all.map(({ key, href, title, note, at }) => {
    const link = node("a", { href }, node("span", { className: "name" }, title), node("span", { className: "note" }, [...note.filter(Boolean), when(at)].join(", ")));
    const button = node("button", { type: "button", className: "quiet", onclick: () => { forget(key); renderLibrary(); $("library-title").focus(); } }, "Forget");
    button.setAttribute("aria-label", `Forget ${title}`);
    return node("li", {}, link, button);
  }));
}

function aboutGame([id, { mode, mine, request, result, at }]) {
  const agents = ["black", "white"].map((colour) => request?.[colour]?.agent).filter(Boolean).map((spec) => {
    const { title, strength } = setup.describe(spec);
    return strength ? `${title}, ${strength}` : title;
  });
  const title = { computer: `Against ${agents[0] ?? "the computer"}`, here: "Two here", friend: "With a friend" }[mode] ?? (agents.join(" – ") || "Watched");
  const rules = request ? [`${request.size}×${request.size}`, request.variant === "reversed" ? "fewest discs win" : ""] : [];
  return { key: `game ${id}`, href: `/#game=${id}`, title, note: [...rules, mine, result], at };
}

function aboutReview([key, { document: { black, white, board }, moves, at }]) {
  const size = Math.sqrt(board.length);
  const title = black || white ? `Review of ${black ?? "Black"} – ${white ?? "White"}` : "Review";
  return { key: `review ${key}`, href: `/#review=${key}`, title, note: [`${size}×${size}`, plural(moves, "move")], at };
}
