// The guide in Chromium: every page at two widths, without overflow, console messages or accessibility violations. Pages
// are opened in parallel tabs of one browser. GUIDE is the folder of the built pages.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const root = process.env.GUIDE;
const wide = { width: 1400, height: 900 };
const narrow = { width: 400, height: 900 };
// Pages that Sphinx makes for itself, without content of ours.
const generated = new Set(["genindex.html", "search.html", "py-modindex.html"]);
const pages = readdirSync(root, { recursive: true }).map(String).filter((name) => name.endsWith(".html") && !name.startsWith("_")).sort();
let browser;
let context;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  context = await browser.newContext({ viewport: wide, colorScheme: "light", reducedMotion: "reduce" });
});
after(() => browser?.close());

// What is wrong with a page that is open: text outside of the page or of its box.
function overflow() {
  const found = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) {
    const wide = [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > page.clientWidth + 1 && !e.closest(".pst-scrollable-table-container, .output_html, div.math, .visually-hidden"));
    found.push(`the page is ${page.scrollWidth} wide: ${wide.slice(0, 3).map((e) => `${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 40)}`).join(" | ")}`);
  }
  for (const box of document.querySelectorAll("pre, div.highlight, code, td, th, .sig, .admonition")) {
    if (box.closest(".output_html") || box.getClientRects().length === 0 || getComputedStyle(box).display === "inline") continue;
    if (box.scrollWidth > box.clientWidth + 1) found.push(`${box.tagName}.${box.className} overflows: ${box.textContent.trim().slice(0, 60)}`);
  }
  return found;
}

test("the guide has its pages", () => {
  for (const page of ["index.html", "theory.html", "choosing.html", "which_tool.html", "auto_examples/index.html", "recipes/text.html", "engines/faiss.html", "coming_from/svm.html"]) assert.ok(pages.includes(page), page);
});

// What axe-core, which is loaded, finds on a page, and how many rules were passed.
async function check(options) {
  const { violations, passes } = await window.axe.run(document, { resultTypes: ["violations"], preload: false, ...options });
  return { n: passes.length, violations: violations.map((v) => `${v.id} (${v.impact}): ${v.help}; ${v.nodes.slice(0, 2).map((node) => node.html.slice(0, 160)).join(" | ")}`) };
}

// Opens a page once: wide for the accessibility checker, which sees all of its parts then, and narrow after that.
async function problems(name) {
  const wrong = [];
  const page = await context.newPage();
  try {
    page.setDefaultTimeout(120_000);
    page.on("console", (message) => wrong.push(`console ${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
    page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) wrong.push(`request: ${request.url()}`); });
    await page.goto(pathToFileURL(join(root, name)).href);
    const missing = await page.evaluate(() => [...document.images].filter((image) => image.complete && image.naturalWidth === 0 && image.getAttribute("loading") !== "lazy").map((image) => image.src));
    wrong.push(...missing.map((src) => `image ${src} is missing`));
    wrong.push(...(await page.evaluate(overflow)).map((text) => `${wide.width}: ${text}`));
    if (!generated.has(name)) {
      // Style sheets are not loaded again: the pages are files.
      await page.evaluate(axe);
      const { violations, n } = await page.evaluate(check, {});
      assert.ok(n > 10, "the checker ran");
      wrong.push(...violations);
    }
    await page.setViewportSize(narrow);
    wrong.push(...(await page.evaluate(overflow)).map((text) => `${narrow.width}: ${text}`));
    // The theme makes boxes that scroll reachable by keyboard a moment after the width has changed.
    const reachable = () => [...document.querySelectorAll('.pst-scrollable-table-container[tabindex="-1"]')].every((box) => box.scrollWidth <= box.clientWidth);
    await page.waitForFunction(reachable, null, { timeout: 5000 }).catch(() => {});
    // Of the rules, this one depends on the width: more boxes scroll here.
    if (!generated.has(name)) wrong.push(...(await page.evaluate(check, { runOnly: ["scrollable-region-focusable"] })).violations.map((text) => `${narrow.width}: ${text}`));
  } finally {
    await page.close();
  }
  return wrong;
}

describe("every page is in order", { concurrency: Math.max(2, Math.min(4, availableParallelism())) }, () => {
  for (const name of pages) it(name, async () => assert.deepEqual(await problems(name), []));
});

test("every example of the gallery has a thumbnail of its own", () => {
  const gallery = readFileSync(join(root, "auto_examples/index.html"), "utf8");
  const images = [...gallery.matchAll(/<img[^>]*src="([^"]*thumb[^"]*)"/g)].map((match) => match[1]);
  const examples = pages.filter((name) => /^auto_examples\/(plot_.*|cluster)\.html$/.test(name));
  assert.equal(images.length, examples.length);
  const contents = images.map((image) => readFileSync(join(root, "auto_examples", decodeURI(image))).toString("base64"));
  // The picture that stands for "no picture" would be there more than once, or be that of the package.
  assert.equal(new Set(contents).size, contents.length);
});
