// Tones and spoken words. A browser plays neither before a person has touched the page.
import { language } from "/words.js";

export const choice = { sound: true, voice: false };
let audio = null;

// tones are frequency in Hz and start in seconds.
const tones = { key: [[880, 0]], open: [[523, 0], [784, .12]], closed: [[784, 0], [523, .12]], error: [[220, 0], [196, .18]] };

export function play(name) {
  if (!choice.sound || !window.AudioContext || !navigator.userActivation?.hasBeenActive) return;
  audio ??= new AudioContext();
  for (const [pitch, at] of tones[name]) {
    const o = audio.createOscillator(), g = audio.createGain(), start = audio.currentTime + at, end = start + (name === "key" ? .04 : .16);
    o.frequency.value = pitch;
    g.gain.setValueAtTime(.12, start);
    g.gain.exponentialRampToValueAtTime(.001, end);
    o.connect(g).connect(audio.destination);
    o.start(start);
    o.stop(end);
  }
}

const voiceOf = (lang) => {
  const wanted = { "zh-Hans": "zh-cn", "zh-Hant": "zh-tw" }[lang] ?? lang;
  return window.speechSynthesis?.getVoices().find((v) => v.lang.toLowerCase().replace("_", "-").startsWith(wanted));
};

export const hasVoice = () => Boolean(voiceOf(language()));

// speak says a text instead of what is being said, or after it.
export function speak(text, after = false) {
  if (!after) window.speechSynthesis?.cancel();
  const voice = choice.voice && voiceOf(language());
  if (!voice || !text) return;
  const u = new SpeechSynthesisUtterance(text);
  u.voice = voice;
  u.lang = voice.lang;
  window.speechSynthesis.speak(u);
}
