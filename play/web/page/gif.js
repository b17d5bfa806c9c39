// An animated GIF (GIF89a) of frames with few colours. It needs no document.

const CLEAR = 256, END = 257, MAX_CODES = 4096;
const word = (value) => [value & 255, value >> 8];
const text = (letters) => [...letters].map((letter) => letter.charCodeAt(0));

// Return the file of frames, each an RGBA array of width × height pixels, shown for *delay* hundredths of a second, repeated endlessly.
export function gifOf(frames, width, height, delay) {
  const pixels = frames.map(({ buffer }) => new Uint32Array(buffer)), palette = paletteOf(pixels), indices = new Map(palette.map((colour, i) => [colour, i]));
  const table = Array.from({ length: 256 }, (_, i) => channels(palette[i] ?? 0)).flat();
  const parts = [[...text("GIF89a"), ...word(width), ...word(height), 0xf7, 0, 0, ...table, 0x21, 0xff, 11, ...text("NETSCAPE2.0"), 3, 1, 0, 0, 0]];
  for (const [i, frame] of pixels.entries()) {
    const shown = i < pixels.length - 1 ? delay : 4 * delay, isNew = (colour, at) => colour !== pixels[i - 1]?.[at]; // the last frame stays longer
    const top = Math.max(0, Math.floor(frame.findIndex(isNew) / width)), bottom = Math.max(top, Math.floor(frame.findLastIndex(isNew) / width)) + 1;
    parts.push([0x21, 0xf9, 4, 4, ...word(shown), 0, 0, 0x2c, 0, 0, ...word(top), ...word(width), ...word(bottom - top), 0, 8]); // the rows that change
    const data = compressed(Uint8Array.from(frame.subarray(top * width, bottom * width), (colour) => indexOf(colour, palette, indices)));
    for (let at = 0; at < data.length; at += 255) parts.push([Math.min(255, data.length - at)], data.subarray(at, at + 255));
    parts.push([0]);
  }
  return new Blob([...parts.map((part) => Uint8Array.from(part)), Uint8Array.of(0x3b)], { type: "image/gif" });
}

const channels = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];

// The most frequent colours of the first frame and the last.
function paletteOf(frames) {
  const counts = new Map();
  for (const frame of [frames[0], frames.at(-1)]) for (const colour of frame) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([colour]) => colour);
}

// The index of the nearest colour of the palette.
function indexOf(colour, palette, indices) {
  if (!indices.has(colour)) {
    const own = channels(colour), distance = (other) => channels(other).reduce((sum, value, i) => sum + (value - own[i]) ** 2, 0);
    indices.set(colour, palette.indexOf(palette.toSorted((a, b) => distance(a) - distance(b))[0]));
  }
  return indices.get(colour);
}

// LZW with codes of 9 to 12 bits, the lowest bit first.
function compressed(pixels) {
  const bytes = new Uint8Array(2 * pixels.length + 8);
  let length = 0, held = 0, bits = 0, size = 9, codes = new Map(), prefix = pixels[0];
  const write = (code) => {
    held |= code << bits;
    for (bits += size; bits >= 8; bits -= 8, held >>= 8) bytes[length++] = held & 255;
  };
  write(CLEAR);
  for (const pixel of pixels.subarray(1)) {
    const key = (prefix << 8) | pixel, code = codes.get(key);
    if (code !== undefined) prefix = code;
    else {
      write(prefix);
      const next = END + 1 + codes.size;
      if (next < MAX_CODES) {
        codes.set(key, next);
        if (next === 1 << size) size++;
      } else {
        write(CLEAR);
        [size, codes] = [9, new Map()];
      }
      prefix = pixel;
    }
  }
  write(prefix);
  write(END);
  bytes[length++] = held & 255;
  return bytes.subarray(0, length);
}
