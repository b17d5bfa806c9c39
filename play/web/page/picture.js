// Pictures of positions, whose colours do not depend on the theme: SVG, PNG, and an animated GIF of a game.

import { nameOf } from "../game/rules.js";
import { gifOf } from "./gif.js";
import { download } from "./notices.js";
import { node } from "./state.js";

const UNIT = 40, RIM = 20, FRAME_TIME = 80; // hundredths of a second
const FRAME = "#23382f", LABEL = "#b9cabf", FELT = "#2f775b", LINE = "#1f533f", LAST = "#c8443a", DISCS = { X: "#1d1f22", O: "#f6f3ec" };

const circle = (x, y, r, fill, more = "") => `<circle cx="${x}" cy="${y}" r="${r}" fill="${fill}"${more}/>`;

// Return the SVG of a position: dots on the squares that the side to move may take, rings on others, by their names.
export function svgOf({ board, turn, move }, { dots = [], rings = [move] } = {}) {
  const size = Math.sqrt(board.length), side = size * UNIT, extent = side + 2 * RIM, parts = [];
  for (let i = 0; i < size; i++) {
    const middle = RIM + (i + 0.5) * UNIT, label = (x, y, text) => `<text x="${x}" y="${y}">${text}</text>`;
    parts.push(label(middle, RIM - 6, "abcdefgh"[i]), label(RIM / 2, middle + 4, i + 1));
  }
  const lines = Array.from({ length: size - 1 }, (_, i) => RIM + (i + 1) * UNIT).map((at) => `M${at} ${RIM}v${side}M${RIM} ${at}h${side}`).join("");
  const squares = [...board].map((disc, i) => {
    const x = RIM + (i % size + 0.5) * UNIT, y = RIM + (Math.floor(i / size) + 0.5) * UNIT, name = nameOf(i, size);
    const shown = disc === "-" ? "" : circle(x, y, 16, DISCS[disc]);
    const dot = dots.includes(name) ? circle(x, y, 5, DISCS[turn === "black" ? "X" : "O"], ' stroke="#fff"') : "";
    return shown + dot + (rings.includes(name) ? circle(x, y, 6, "none", ` stroke="${LAST}" stroke-width="3"`) : "");
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${extent}" height="${extent}" viewBox="0 0 ${extent} ${extent}"><rect width="${extent}" height="${extent}" rx="6" fill="${FRAME}"/>`
    + `<g fill="${LABEL}" font-family="Helvetica, Arial, sans-serif" font-size="12" text-anchor="middle">${parts.join("")}</g>`
    + `<rect x="${RIM}" y="${RIM}" width="${side}" height="${side}" fill="${FELT}"/><path d="${lines}" stroke="${LINE}"/>${squares.join("")}</svg>`;
}

export const addressOf = (svg) => `data:image/svg+xml,${encodeURIComponent(svg)}`;

async function painted(position, scale) {
  const image = node("img", { src: addressOf(svgOf(position)) });
  await image.decode();
  const canvas = node("canvas", { width: scale * image.width, height: scale * image.height });
  canvas.getContext("2d", { willReadFrequently: true }).drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

// Download the shown position as "svg" or "png", or the whole line as "gif".
export async function savePicture(kind, { tree }, here) {
  if (kind === "svg") return download(svgOf(here), "reversi.svg", "image/svg+xml");
  if (kind === "png") return (await painted(here, 2)).toBlob((blob) => download(blob, "reversi.png"));
  const frames = [];
  for (const position of tree.line(here)) {
    const canvas = await painted(position, 1);
    frames.push(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height));
  }
  const [{ width, height }] = frames;
  download(gifOf(frames.map(({ data }) => data), width, height, FRAME_TIME), "reversi.gif");
}
