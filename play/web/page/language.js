// The page's language: texts from one file per language, with its numbers and plurals.

import { saveSettings, settings } from "../game/memory.js";

const PLACES = { "data-words-label": "aria-label", "data-words-placeholder": "placeholder" };

let texts = {}, language = "en", requested = "en", formats = [];

// {value, digits}: a number for a text, with its number of decimals.
export const decimal = (value, digits = 1) => ({ value, digits });
const capital = (text) => text.slice(0, 1).toLocaleUpperCase(language) + text.slice(1);
export const colourName = (colour) => words(`colour.${colour}`);
export const currentLanguage = () => language;

// The text of a key with its {places} filled in, a {Place} with a capital; of plural forms the one for {n}.
export function words(key, values = {}) {
  const entry = texts[key] ?? key, text = typeof entry === "string" ? entry : entry[pluralForm(values.n)] ?? entry.other;
  return text.replace(/\{(\w+)\}/g, (_, place) => {
    const name = place.toLowerCase(), shown = written(values[name]);
    return name === place ? shown : capital(shown);
  });
}

export const hasWords = (key) => key in texts;
export const joined = (texts) => texts.filter(Boolean).join(words("between.items"));
export const sentences = (texts) => texts.filter(Boolean).join(words("between.sentences"));
export const number = (value, digits = 0) => tools(digits).format.format(value);
export const signed = (value, digits = 1) => (value > 0 ? "+" : value < 0 ? "−" : "±") + number(Math.abs(value), digits);
export const dateText = (at) => new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(at);

const pluralForm = (count) => tools(count?.digits ?? 0).rules.select(count?.value ?? count);
const written = (value) => (typeof value === "number" ? number(value) : value?.digits === undefined ? String(value) : number(value.value, value.digits));

// Number format and plural rules for a number of decimals: 1.0 may take another plural than 1.
function tools(digits) {
  const exactly = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return formats[digits] ??= { format: new Intl.NumberFormat(language, exactly), rules: new Intl.PluralRules(language, exactly) };
}

// Fill in the document's texts, with `this` as code, and attributes.
function fill() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-words]")) {
    const parts = words(element.dataset.words).split("`");
    element.replaceChildren(...parts.map((part, i) => (i % 2 ? Object.assign(document.createElement("code"), { textContent: part }) : part)));
  }
  for (const [place, attribute] of Object.entries(PLACES)) {
    for (const element of document.querySelectorAll(`[${place}]`)) element.setAttribute(attribute, words(element.getAttribute(place)));
  }
}

async function load(code) {
  requested = code;
  const response = await fetch(new URL(`../words/${code}.json`, import.meta.url));
  if (!response.ok) throw new TypeError(`no words: ${response.status}`);
  const loaded = await response.json();
  if (requested !== code) return; // another language was chosen in the meantime
  [texts, language, formats] = [loaded, code, []];
  fill();
}

// Use the stored choice, or the browser's first available language, or English; *onChange* is called after each choice.
export async function begin(chooser, onChange) {
  const codes = Array.from(chooser.options, ({ value }) => value), main = (code) => code.split("-")[0];
  const fitting = (wish) => codes.find((code) => main(code) === main(wish ?? ""));
  const wishes = [settings().language, ...navigator.languages];
  chooser.value = wishes.map(fitting).find(Boolean) ?? "en";
  await load(chooser.value).catch(() => load(chooser.value = "en"));
  chooser.addEventListener("change", async () => {
    await load(chooser.value).then(() => saveSettings({ language }), () => { chooser.value = language; }); // unchanged without the server
    onChange();
  });
}
