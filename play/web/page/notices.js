// Notices: the live region for screen readers, messages that disappear, the clipboard and downloads.

import { Problem } from "../game/api.js";
import { sentences, words } from "./language.js";
import { $, app, node } from "./state.js";

const MAX_TEXTS = 5; // waiting: a page in the background draws no frame, so nothing is announced

// Announce a text to screen readers. Texts of one frame are joined, since only the last would be read.
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

// Ask before something that cannot be undone.
export const isSure = (question, yes) => new Promise((answer) => {
  const dialog = $("sure");
  [$("sure-text").textContent, $("sure-yes").textContent] = [question, yes];
  Object.assign(dialog, { returnValue: "", onclose: () => answer(dialog.returnValue === "yes") });
  dialog.showModal();
});

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

// Pages over plain HTTP from another machine have no other clipboard access.
function copyTheOldWay(text) {
  const field = node("textarea", { value: text, className: "sr" }), focused = document.activeElement;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused.focus({ preventScroll: true });
  return copied;
}

export function download(content, name, type = "text/plain") {
  const href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  node("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}
