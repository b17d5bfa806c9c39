// The player's rating over finished games without help against the computer's levels, on 8×8 with normal rules, where the levels were measured.

import { sentences, signed, words } from "../page/language.js";
import { forgetRated, noteGame, rateGame, ratedGames, rememberedGame } from "./memory.js";
import { estimate } from "./rating.js";
import { isSure } from "../page/notices.js";
import { ratedLevel, ratingOf } from "./setup.js";
import { $, app, isLive, other } from "../page/state.js";

// The level of the opponent, if the game can be rated.
function levelOf({ mode, mine, request }, state) {
  const isMeasured = state && !request?.moves && mode === "computer" && mine && state.size === 8 && state.variant === "normal" && state.start === "standard";
  return isMeasured ? ratedLevel(state[other(mine)].agent ?? "")?.level ?? null : null;
}

// Note that the player had help in a running game.
export function noteHelp() {
  if (app.game?.state?.status === "running") noteGame(app.game.id, { helped: true });
}

// Rate a game at its end, once.
export function settle(game, state) {
  const level = levelOf(game, state), { rated, helped } = rememberedGame(game.id) ?? { helped: true };
  if (state.status !== "finished" || level === null || rated || helped) return;
  const { winner } = state.result, before = standing();
  rateGame(game.id, { level, score: winner === null ? 0.5 : Number(winner === game.mine) });
  if (before.count) noteGame(game.id, { change: Math.round(standing().rating) - Math.round(before.rating) });
  render();
}

export async function reset() {
  if (!await isSure(words("standing.forget"), words("standing.reset"))) return;
  forgetRated();
  render();
}

// {rating, low, high, count, level: the nearest one}
function standing() {
  const estimated = estimate(ratedGames().map(({ level, score }) => ({ rating: ratingOf(level), score })).filter(({ rating }) => rating));
  const distance = (level) => Math.abs(ratingOf(level) - estimated.rating);
  let level = 1;
  for (let next = 2; ratingOf(next) !== undefined; next++) if (distance(next) < distance(level)) level = next;
  return { ...estimated, level };
}

const rounded = (rating) => String(Math.round(rating));
const text = ({ rating, low, high, count: n }) => words("standing.rating", { rating: rounded(rating), low: rounded(low), high: rounded(high), n });

const changeText = (change) => change !== undefined && words("standing.change", { change: signed(change, 0) });

export function render() {
  const now = standing();
  $("setup-standing").hidden = $("standing").hidden = !now.count;
  $("setup-standing").textContent = sentences([text(now), words("standing.nearest", { level: now.level })]);
  $("standing").firstElementChild.textContent = text(now);
}

// Show in a game whether it is rated, and the rating after it.
export function renderRated() {
  const { game } = app, level = isLive() ? levelOf(game, game.state) : null, { rated, helped, change } = (level !== null && rememberedGame(game.id)) || {};
  $("rated").hidden = level === null || (game.state.status === "finished" && !rated && !helped);
  if (!$("rated").hidden) $("rated").textContent = helped ? words("standing.helped") : rated ? sentences([text(standing()), changeText(change)]) : words("standing.counts");
}
