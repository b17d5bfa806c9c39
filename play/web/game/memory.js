// Data that this browser stores: games with their tokens, reviews, rated results, puzzles and settings.

import { MAX_RESULTS } from "./rating.js";

const GAMES = "reversi.games", REVIEW = "reversi.review.", SETTINGS = "reversi.likes", RATED = "reversi.rated", PUZZLES = "reversi.puzzles";
const MAX_GAMES = 100, MAX_REVIEWS = 50;

function read(key, fallback) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? fallback;
  } catch {
    return fallback;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch { /* private windows may not keep anything */ }
}

// A random name or secret.
export const newKey = (length) => Array.from(crypto.getRandomValues(new Uint8Array(length)), (byte) => byte.toString(36).padStart(2, "0")).join("");

export function rememberGame(id, entry) {
  const games = { [id]: { ...entry, at: Date.now() } };
  const others = Object.entries(read(GAMES, {})).filter(([other]) => other !== id);
  for (const [other, kept] of others.sort((a, b) => b[1].at - a[1].at).slice(0, MAX_GAMES - 1)) games[other] = kept;
  write(GAMES, games);
}

export const rememberedGame = (id) => read(GAMES, {})[id];

// Change the entry of a game, if there still is one.
export function noteGame(id, changes) {
  const entry = rememberedGame(id);
  if (entry) rememberGame(id, { ...entry, ...changes });
}

export const games = () => Object.entries(read(GAMES, {}));

// Store a review under a separate key, so that two windows do not overwrite each other: {document, moves, link, at}.
export function rememberReview(key, entry) {
  write(REVIEW + key, { ...rememberedReview(key), ...entry, at: Date.now() });
  for (const [old] of reviews().sort((a, b) => b[1].at - a[1].at).slice(MAX_REVIEWS)) forget(`review ${old}`);
}

export const rememberedReview = (key) => read(REVIEW + key, null);

export function reviews() {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(REVIEW)).map((key) => key.slice(REVIEW.length));
    return keys.map((key) => [key, rememberedReview(key)]).filter(([, entry]) => entry?.document?.board);
  } catch {
    return [];
  }
}

// Delete "game ID" or "review KEY".
export function forget(what) {
  const [kind, id] = what.split(" ");
  try {
    if (kind === "review") localStorage.removeItem(REVIEW + id);
    else write(GAMES, Object.fromEntries(games().filter(([other]) => other !== id)));
  } catch { /* nothing is kept */ }
}

export const settings = () => read(SETTINGS, {});
export const saveSettings = (changes) => write(SETTINGS, { ...settings(), ...changes });

// Results against the computer's levels, {level, score}; a game counts once, even after they were reset.
export const ratedGames = () => read(RATED, []);
export const forgetRated = () => write(RATED, []);
export function rateGame(id, result) {
  noteGame(id, { rated: true });
  write(RATED, [...ratedGames(), result].slice(-MAX_RESULTS));
}

// Puzzle data: {answers: [{rating, score}], streak, longest, seen: {game: [number]}, own: [puzzle], kind, current: the shown puzzle}.
export const puzzleData = () => ({ answers: [], streak: 0, longest: 0, seen: {}, own: [], kind: "8-normal", current: null, ...read(PUZZLES, {}) });
export const savePuzzleData = (changes) => write(PUZZLES, { ...puzzleData(), ...changes });
