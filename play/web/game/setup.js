// The form for a new game, from its fields to the server's request.

import { call } from "./api.js";
import { decimal, hasWords, words } from "../page/language.js";
import { saveSettings, settings } from "./memory.js";
import { $, other, sleep } from "../page/state.js";

const STRENGTHS = ["depth=1", "depth=2", "depth=3", "depth=4", "depth=6", "depth=8", "time=0.5", "time=1", "time=3"];
const FIELDS = ["mode", "agent", "agent2", "strength", "strength2", "colour", "variant", "size", "clock", "opening"];

// Strong players use the book, with some variety.
const BOOK = ",book=yes,variety=1";

const POLL_MILLISECONDS = 1000;

let agents = [], address = null, compiled = 1;

// The address of this page for others, and whether they can reach it: on another machine 127.0.0.1 is that machine.
export function addressForOthers() {
  const isLoopback = /^(localhost|127\..*|\[::1\])$/.test(location.hostname);
  return { origin: isLoopback ? address ?? location.origin : location.origin, canReach: !isLoopback || Boolean(address) };
}

const named = (name) => agents.find((agent) => agent.name === name);

// The steps of the slider for an agent, [option, text] each: its levels by name, or search limits.
function strengthsOf(name) {
  const { levels = [], searches = false } = named(name) ?? {};
  if (levels.length) return levels.map((title, i) => [`level=${i + 1}`, `${i + 1} · ${translated(`level.${name}.${i + 1}`, title)}`]);
  return searches ? STRENGTHS.map((option) => [option, strengthName(option)]) : [];
}

const translated = (key, text) => (hasWords(key) ? words(key) : text);

function strengthName(option) {
  const [kind, amount] = option.split("=");
  return words(`strength.${kind}`, { n: decimal(Number(amount), amount.includes(".") ? 1 : 0) });
}

// The name of an agent in a record, in English for readers of any language.
export const recordName = (spec) => named(spec.split(":")[0])?.title ?? spec;
export const shownName = (name) => titleOf(agents.find(({ title }) => title === name)?.name ?? name); // and its name in the page's language
const titleOf = (name) => translated(`agent.${name}`, named(name)?.title ?? name);

// The rating of a level by its number; and {level, rating} of an agent's spec, or null for one without rated levels.
export const ratingOf = (level) => agents.find(({ ratings }) => ratings?.length)?.ratings[level - 1];
export function ratedLevel(spec) {
  const [name, options = ""] = spec.split(":"), level = Number(options.match(/(?:^|,)level=(\d+)/)?.[1]), rating = named(name)?.ratings?.[level - 1];
  return rating === undefined ? null : { level, rating };
}

// "Network, 3 plies" for "network:depth=3".
export function describe(spec) {
  const [name, options = ""] = spec.split(":");
  const shown = options.replace(BOOK, "").replace(/,?seed=\d+/, "");
  const strength = strengthsOf(name).find(([option]) => option === shown)?.[1] ?? shown;
  return { title: titleOf(name), strength };
}

export const isReady = () => agents.length > 0;

export async function prepare(form) {
  await loadAgents();
  for (const select of [form.agent, form.agent2]) select.replaceChildren(...agents.map(({ name }) => new Option(name, name)));
  form.agent2.value = "six-factor";
  for (const [name, value] of Object.entries(settings().setup ?? {})) if (FIELDS.includes(name)) form.elements[name].value = value;
  for (const select of [form.agent, form.agent2]) noteChoice(select);
  form.addEventListener("input", ({ target }) => { if (target.matches("#agent, #agent2")) noteChoice(target); refresh(form); });
  refresh(form);
  follow(form);
}

// Load the agents again while opponents are compiled, at the first start.
async function follow(form) {
  while (compiled < 1) {
    await sleep(POLL_MILLISECONDS);
    await loadAgents().catch(() => {});
    refresh(form);
  }
}

const loadAgents = async () => { ({ agents, address, compiled } = await call("GET", "/api/agents")); };
const noteChoice = (select) => { select.dataset.choice = select.value; };

export function refresh(form) {
  const { mode, size } = Object.fromEntries(new FormData(form));
  for (const part of form.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(mode);
  form.opening.disabled = size === "4"; // eight moves would be most of the game
  form.querySelector("#opening-hint").hidden = form.opening.disabled || !form.opening.value;
  $("compiling").hidden = compiled === 1 || agents.every(({ sizes, ready }) => sizes.length === ready.length);
  $("compiling").firstElementChild.value = compiled;
  form.querySelector("#agent-label").textContent = words(mode === "watch" ? "side.black" : "setup.opponent");
  for (const [select, slider, text] of [["agent", "strength", "strength-text"], ["agent2", "strength2", "strength2-text"]]) {
    for (const option of form[select].options) {
      const { name, about, sizes, ready } = named(option.value), isReady = ready.includes(Number(size)), isLate = !isReady && sizes.includes(Number(size));
      const text = isLate ? words("setup.not-ready", { agent: titleOf(name) }) : titleOf(name);
      Object.assign(option, { text, title: translated(`about.${name}`, about), disabled: !isReady });
    }
    // The chosen agent may not be compiled yet, may not play on this board, or may no longer be on offer.
    const able = Array.from(form[select].options).filter(({ disabled }) => !disabled).map(({ value }) => value), { choice } = form[select].dataset;
    form[select].value = able.includes(choice) ? choice : able[0] ?? "";
    form.querySelector(`#${select}-about`).textContent = form[select].selectedOptions[0]?.title ?? "";
    const strengths = strengthsOf(form[select].value);
    form[slider].max = Math.max(0, strengths.length - 1);
    const strength = strengths[form[slider].value]?.[1];
    form[slider].disabled = !strength;
    form.querySelector(`#${text}`).textContent = strength ?? "–";
    form[slider].setAttribute("aria-valuetext", strength ?? words("strength.none"));
  }
  $("start").disabled = !form.agent.value;
}

export const easiest = () => `human:level=1,seed=${anySeed()}`;
const anySeed = () => Math.floor(Math.random() * 1e6);

// The same seat for another game, with another seed, so that the agent need not repeat its moves.
export const reseeded = (seat) => seat?.agent ? { ...seat, agent: seat.agent.replace(/seed=\d+/, () => `seed=${anySeed()}`) } : seat;

// The agent's spec; a level for people plays the same moves for the same seed, so every game has a new seed.
function spec(form, agent, slider) {
  const name = form[agent].value, strength = strengthsOf(name)[form[slider].value]?.[0];
  const { levels = [], books = [] } = named(name) ?? {};
  const seed = levels.length ? `,seed=${anySeed()}` : "";
  const book = books.includes(Number(form.elements.size.value)) && !strength?.startsWith("level") ? BOOK : "";
  return strength ? `${name}:${strength}${seed}${book}` : name;
}

// The moves of an opening, chosen at random, after which both sides have equal chances.
export async function evenOpening({ size, variant }) {
  const openings = await call("GET", new URL(`../openings/${size}-${variant}.json`, import.meta.url));
  return openings[Math.floor(Math.random() * openings.length)].match(/../g);
}

// {mode, mine, request}: the kind of game, the colour that is played here (null: both or none), and the server's request.
export async function readForm(form) {
  const fields = Object.fromEntries(new FormData(form));
  saveSettings({ setup: Object.fromEntries(FIELDS.map((name) => [name, form.elements[name].dataset?.choice ?? form.elements[name].value])) });
  const request = { size: Number(fields.size), variant: fields.variant };
  if (fields.opening) request.moves = await evenOpening(request);
  if (fields.clock && fields.mode !== "watch") {
    const [seconds, increment] = fields.clock.split("+").map(Number);
    request.clock = { seconds, increment };
  }
  const colour = fields.colour === "either" ? (Math.random() < 0.5 ? "black" : "white") : fields.colour;
  const agent = (which, strength) => ({ kind: "agent", agent: spec(form, which, strength) });
  if (fields.mode === "computer") request[other(colour)] = agent("agent", "strength");
  if (fields.mode === "watch") {
    request.black = agent("agent", "strength");
    request.white = agent("agent2", "strength2");
  }
  const mine = fields.mode === "computer" || fields.mode === "friend" ? colour : null;
  return { mode: fields.mode, mine, request };
}
