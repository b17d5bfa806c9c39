// What this browser remembers: the games that it has tokens of, and how it likes things.

const GAMES = "reversi.games", LIKES = "reversi.likes", MOST_GAMES = 50;

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

export function rememberGame(id, entry) {
  const games = { [id]: { ...entry, at: Date.now() } };
  const others = Object.entries(read(GAMES, {})).filter(([other]) => other !== id);
  for (const [other, kept] of others.sort((a, b) => b[1].at - a[1].at).slice(0, MOST_GAMES - 1)) games[other] = kept;
  write(GAMES, games);
}

export const rememberedGame = (id) => read(GAMES, {})[id];

export const likes = () => read(LIKES, {});
export const like = (changes) => write(LIKES, { ...likes(), ...changes });
