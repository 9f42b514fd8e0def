// The page's words, in the language that is chosen.
export const texts = await (await fetch("/texts.json")).json();

const first = choose(navigator.languages || []);
let lang = first;

function choose(wanted) {
  for (const w of wanted) {
    const l = w.toLowerCase();
    if (l.startsWith("zh")) return /hant|tw|hk|mo/.test(l) ? "zh-Hant" : "zh-Hans";
    const base = l.split("-")[0];
    if (texts[base]) return base;
  }
  return "en";
}

export const language = () => lang;

// setLanguage chooses a language; without one, the browser's own.
export function setLanguage(code = first) {
  lang = code;
  document.documentElement.lang = code;
}

// t gives a text with its gaps filled in.
export function t(key, fill = {}) {
  return (texts[lang][key] ?? texts.en[key] ?? key).replace(/\{(\w+)\}/g, (_, k) => fill[k] ?? "");
}

export const has = (key) => key in texts.en;

// clock writes seconds as minutes and seconds, and hours where there are any.
export function clock(seconds) {
  const two = (n) => String(n).padStart(2, "0"), minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}:${two(seconds % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}
