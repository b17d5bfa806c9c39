// A player's rating from results against opponents or puzzles with known Elo. This module does not use the DOM.

// The prior of a rating, and the grid of ratings.
const PRIOR = { mean: 1300, deviation: 500 }, LOWEST = -700, HIGHEST = 3300, STEP = 5;
// The probability of the interval, and the number of latest results that count, since players improve.
const SHARE = 0.95;
export const MAX_RESULTS = 50;

// The logarithm of the probability to win, by the difference of ratings.
const logChance = (difference) => -Math.log1p(10 ** (-difference / 400));

// {rating, low, high, count} after results {rating: the opponent's, score: 1, ½ or 0}: the posterior's mean and 95 % interval.
export function estimate(results) {
  const counted = results.slice(-MAX_RESULTS), ratings = [], logs = [];
  for (let own = LOWEST; own <= HIGHEST; own += STEP) {
    ratings.push(own);
    logs.push(counted.reduce((sum, { rating, score }) => sum + score * logChance(own - rating) + (1 - score) * logChance(rating - own),
      -0.5 * ((own - PRIOR.mean) / PRIOR.deviation) ** 2));
  }
  const most = Math.max(...logs), belief = logs.map((log) => Math.exp(log - most)), all = belief.reduce((sum, one) => sum + one, 0);
  const rating = ratings.reduce((sum, own, i) => sum + own * belief[i], 0) / all;
  return { rating, low: quantile(ratings, belief, all * (1 - SHARE) / 2), high: quantile(ratings, belief, all * (1 + SHARE) / 2), count: counted.length };
}

function quantile(ratings, belief, share) {
  let sum = 0;
  return ratings[Math.max(0, belief.findIndex((one) => (sum += one) >= share))];
}
