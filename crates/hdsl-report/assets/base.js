// The page's data, elements, numbers and colors. Names and texts are data: they only ever become text.

const data = JSON.parse(document.getElementById("data").textContent);
const names = data.names.name;
const classes = data.classes;
const byId = (id) => document.getElementById(id);

// An element with attributes and children; strings become text.
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function say(id, text) {
  const place = byId(id);
  if (place) place.textContent = text;
}

const thousands = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (share) => `${(100 * share).toFixed(1)}%`;
function count(n, what) {
  const plural = what.endsWith("ss") ? `${what}es` : `${what}s`;
  return `${thousands(n)} ${n === 1 ? what : plural}`;
}

// At most four significant digits, as in the rest of hdsl.
function short(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (!(size >= 1e-4 && size < 1e7)) return x.toExponential(3).replace("e+", "e");
  const decimals = Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(size))));
  const text = x.toFixed(decimals);
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}
const signed = (x) => (x > 0 ? `+${short(x)}` : short(x).replace("-", "\u2212"));
const meaning = (weight) => (weight > 0 ? "together they mean alike" : "together they mean unlike");

// Names as long as they like in tables; in charts the beginning will do.
const brief = (name, most = 24) => ([...name].length > most ? `${[...name].slice(0, most - 1).join("")}\u2026` : name);

// The charting library reads a little markup in texts, so what could be markup is spelled out.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// -- light and dark ----------------------------------------------------------------------------------------------------

const whenThemed = [];
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
let asked = null;
function setTheme(theme) {
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light colors" : "Dark colors";
  whenThemed.forEach((redraw) => redraw());
}
const wanted = () => asked ?? (prefersDark.matches ? "dark" : "light");
byId("theme").addEventListener("click", () => {
  asked = wanted() === "dark" ? "light" : "dark";
  setTheme(asked);
});
prefersDark.addEventListener("change", () => setTheme(wanted()));
setTheme(wanted());

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Okabe and Ito's colors, which color-blind readers can tell apart; shapes tell the classes apart without any.
const palette = {
  light: ["#0072b2", "#d55e00", "#008a63", "#b5579a", "#8a6d00", "#3d93c9", "#555555", "#7a3e9d"],
  dark: ["#56b4e9", "#e69f00", "#2fc497", "#e39cc9", "#f0e442", "#8fb8ff", "#cfcfcf", "#c79bff"],
};
const shapes = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "x", "star"];
const hue = (n) => palette[document.documentElement.dataset.theme === "dark" ? "dark" : "light"][n % 8];
// After eight classes the shapes are shifted, so that no two of 64 look alike.
const shape = (n) => shapes[(n + Math.floor(n / 8)) % 8];

// -- where the reader is -----------------------------------------------------------------------------------------------

const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.getAttribute("href").slice(1), a]));
const sections = [...document.querySelectorAll("main > section")];
const seen = new IntersectionObserver(() => {
  const here = sections.findLast((section) => section.getBoundingClientRect().top < 0.3 * window.innerHeight) ?? sections[0];
  links.forEach((a, id) => { if (id === here.id) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current"); });
}, { rootMargin: "0px 0px -70% 0px" });
sections.forEach((section) => seen.observe(section));
