// The page's data, elements, numbers and colors. Names and texts become text nodes, never markup.

const data = JSON.parse(document.getElementById("data").textContent);
const names = data.names.name;
const classes = data.classes;
// What the similarity of the model is compared with: the dot product, or the base alone if the model has a base.
const baseline = data.baseline ?? "dot product";
const capitalized = (text) => text[0].toUpperCase() + text.slice(1);
const byId = (id) => document.getElementById(id);

// Creates an element with attributes and children; strings become text nodes.
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function setText(id, text) {
  const element = byId(id);
  if (element) element.textContent = text;
}

const thousands = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (share) => `${(100 * share).toFixed(1)}%`;
function count(n, noun) {
  const plural = noun.endsWith("ss") ? `${noun}es` : `${noun}s`;
  return `${thousands(n)} ${n === 1 ? noun : plural}`;
}

// At most four significant digits, as in src/format.rs.
function short(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (!(size >= 1e-4 && size < 1e7)) return x.toExponential(3).replace("e+", "e");
  const decimals = Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(size))));
  const text = x.toFixed(decimals);
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}
const signed = (x) => (x > 0 ? `+${short(x)}` : short(x).replace("-", "\u2212"));
const effect = (weight) => (weight > 0 ? "more similar" : "less similar");

// Cuts a long name; charts have less room than tables.
const shorten = (name, longest = 24) => ([...name].length > longest ? `${[...name].slice(0, longest - 1).join("")}\u2026` : name);

// Escapes a text for plotly.js, which interprets some markup.
const escapeMarkup = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// -- light and dark ----------------------------------------------------------------------------------------------------

const onThemeChange = [];
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;
function setTheme(theme) {
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light colors" : "Dark colors";
  onThemeChange.forEach((redraw) => redraw());
}
const currentTheme = () => chosenTheme ?? (prefersDark.matches ? "dark" : "light");
byId("theme").addEventListener("click", () => {
  chosenTheme = currentTheme() === "dark" ? "light" : "dark";
  setTheme(chosenTheme);
});
prefersDark.addEventListener("change", () => setTheme(currentTheme()));
setTheme(currentTheme());

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// The colors of Okabe and Ito, which color-blind readers can distinguish; shapes distinguish classes without colors.
const palette = {
  light: ["#0072b2", "#d55e00", "#008a63", "#b5579a", "#8a6d00", "#3d93c9", "#555555", "#7a3e9d"],
  dark: ["#56b4e9", "#e69f00", "#2fc497", "#e39cc9", "#f0e442", "#8fb8ff", "#cfcfcf", "#c79bff"],
};
const shapes = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "x", "star"];
const hue = (n) => palette[document.documentElement.dataset.theme === "dark" ? "dark" : "light"][n % 8];
// The shapes are shifted after each eight classes, so that 64 combinations of color and shape are different.
const shape = (n) => shapes[(n + Math.floor(n / 8)) % 8];

// -- current section in the table of contents ----------------------------------------------------------------------------

const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.getAttribute("href").slice(1), a]));
const sections = [...document.querySelectorAll("main > section")];
const scrolling = new IntersectionObserver(() => {
  const current = sections.findLast((section) => section.getBoundingClientRect().top < 0.3 * window.innerHeight) ?? sections[0];
  links.forEach((a, id) => { if (id === current.id) a.setAttribute("aria-current", "true"); else a.removeAttribute("aria-current"); });
}, { rootMargin: "0px 0px -70% 0px" });
sections.forEach((section) => scrolling.observe(section));
