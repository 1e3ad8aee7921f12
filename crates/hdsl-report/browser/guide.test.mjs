// The guide in Chromium: every page at two widths, without overflow, console messages or accessibility violations.
// GUIDE is the folder of the built pages.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const root = process.env.GUIDE;
const widths = [1400, 400];
// Pages that Sphinx makes for itself, without content of ours.
const generated = new Set(["genindex.html", "search.html", "py-modindex.html"]);
const pages = readdirSync(root, { recursive: true }).map(String).filter((name) => name.endsWith(".html") && !name.startsWith("_")).sort();
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
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

for (const name of pages) {
  test(name, async () => {
    const wrong = [];
    for (const width of widths) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: "light", reducedMotion: "reduce" });
      const page = await context.newPage();
      page.setDefaultTimeout(120_000);
      page.on("console", (message) => wrong.push(`${width}: console ${message.type()}: ${message.text()}`));
      page.on("pageerror", (error) => wrong.push(`${width}: error: ${error.message}`));
      page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) wrong.push(`${width}: request: ${request.url()}`); });
      await page.goto(pathToFileURL(join(root, name)).href);
      wrong.push(...(await page.evaluate(overflow)).map((text) => `${width}: ${text}`));
      const missing = await page.evaluate(() => [...document.images].filter((image) => image.complete && image.naturalWidth === 0 && image.getAttribute("loading") !== "lazy").map((image) => image.src));
      wrong.push(...missing.map((src) => `${width}: image ${src} is missing`));
      if (!generated.has(name)) {
        // Style sheets are not loaded again: the pages are files.
        await page.evaluate(axe);
        const { violations, passes } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], preload: false }));
        assert.ok(passes.length > 10, "the checker ran");
        wrong.push(...violations.map((v) => `${width}: ${v.id} (${v.impact}): ${v.help}; ${v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160)).join(" | ")}`));
      }
      await context.close();
    }
    assert.deepEqual(wrong, [], relative(root, name));
  });
}

test("every example of the gallery has a thumbnail of its own", () => {
  const gallery = readFileSync(join(root, "auto_examples/index.html"), "utf8");
  const images = [...gallery.matchAll(/<img[^>]*src="([^"]*thumb[^"]*)"/g)].map((match) => match[1]);
  const examples = pages.filter((name) => name.startsWith("auto_examples/plot_"));
  assert.equal(images.length, examples.length);
  const contents = images.map((image) => readFileSync(join(root, "auto_examples", decodeURI(image))).toString("base64"));
  // The picture that stands for "no picture" would be there more than once, or be that of the package.
  assert.equal(new Set(contents).size, contents.length);
});
