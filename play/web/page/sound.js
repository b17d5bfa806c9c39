// Sounds of discs and of the end of a game, from noise and tones, unless they are switched off.

import { saveSettings, settings } from "../game/memory.js";

let context = null;

export const isOn = () => settings().sound ?? true;
export const switchTo = (on) => saveSettings({ sound: on });

// Make a sound, unless sounds are switched off or the browser has none.
function sound(make) {
  if (!isOn() || document.hidden) return;
  try {
    make(context ??= new AudioContext());
  } catch (error) {
    console.warn("no sound:", error);
  }
}

// A disc is put down: a burst of noise that fades within a twentieth of a second.
export const knock = () => sound((audio) => {
  const length = Math.round(audio.sampleRate * 0.05);
  const buffer = audio.createBuffer(1, length, audio.sampleRate), wave = buffer.getChannelData(0);
  for (let i = 0; i < length; i++) wave[i] = (2 * Math.random() - 1) * Math.exp((-7 * i) / length);
  const source = new AudioBufferSourceNode(audio, { buffer });
  const wood = new BiquadFilterNode(audio, { type: "bandpass", frequency: 1300, Q: 1.4 });
  source.connect(wood).connect(new GainNode(audio, { gain: 0.5 })).connect(audio.destination);
  source.start();
});

// The game is over: two notes, upwards or downwards.
export const chime = (isWon) => sound((audio) => {
  for (const [i, frequency] of (isWon ? [523, 784] : [523, 392]).entries()) {
    const begins = audio.currentTime + 0.15 + 0.16 * i;
    const tone = new OscillatorNode(audio, { frequency }), loudness = new GainNode(audio, { gain: 0 });
    loudness.gain.setValueAtTime(0, begins);
    loudness.gain.linearRampToValueAtTime(0.12, begins + 0.02);
    loudness.gain.exponentialRampToValueAtTime(0.001, begins + 0.5);
    tone.connect(loudness).connect(audio.destination);
    tone.start(begins);
    tone.stop(begins + 0.5);
  }
});
