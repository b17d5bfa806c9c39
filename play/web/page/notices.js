// What the page tells people: by its live region, by a message that goes away, by the clipboard and by files.

import { Problem } from "../game/api.js";
import { sentences, words } from "./language.js";
import { $, app, node } from "./state.js";

const MAX_TEXTS = 5; // at once: a page in the background draws nothing, and says nothing

// Tell those who listen to the page. What comes within one frame is said together: of several texts only the last would be heard.
let unsaid = [];
export function say(text) {
  $("live").textContent = "";
  if (!unsaid.length) requestAnimationFrame(() => { $("live").textContent = sentences(unsaid.splice(0)); });
  unsaid = [...unsaid, text].slice(-MAX_TEXTS);
}

let toastTimer = 0;
export function notify(error) {
  if (error?.name === "AbortError") return;
  if (!(error instanceof Problem)) console.error(error);
  $("toast").textContent = error.message ?? String(error);
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, 5000);
}

export async function act(work) {
  try {
    await work();
    return true;
  } catch (error) {
    if (app.game) app.game.sent = false;
    notify(error);
  }
}

export async function copyText(text) {
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  notify(new Problem(copied || copyTheOldWay(text) ? words("page.copied") : text));
}

// Pages that come without encryption, from another machine of the house, have no clipboard but this one.
function copyTheOldWay(text) {
  const field = node("textarea", { value: text, className: "sr" }), focused = document.activeElement;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused.focus({ preventScroll: true });
  return copied;
}

export function download(text, name) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  node("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}
