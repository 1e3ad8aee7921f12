// Reports in Chromium: figures, interaction, accessibility, and no requests or injected markup.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { alone, base, cleanUp, demo, hostile, hostileClasses, hostileNames, hostileText, json, judged, large, withTexts } from "./fixtures.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const wide = { width: 1360, height: 900 };
const phone = { width: 390, height: 844 };
const narrow = { width: 400, height: 900 };
const sections = ["summary", "run", "matrix", "features", "dimension", "map", "neighbors", "errors"];
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});
after(async () => {
  await browser?.close();
  cleanUp();
});

// Opens a page. `trouble` collects every console message, request, dialog and error.
async function open(report, { viewport = wide, colorScheme = "light" } = {}) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  // Long, since the machine may be busy.
  page.setDefaultTimeout(180_000);
  const trouble = [];
  page.on("console", (message) => trouble.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => { trouble.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  const url = pathToFileURL(report.page).href;
  page.on("request", (request) => { if (request.url() !== url && !request.url().startsWith("data:")) trouble.push(`request: ${request.url()}`); });
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.ready && window.Plotly);
  return { page, trouble, close: () => context.close() };
}

async function drawAll(page) {
  for (const chart of await page.locator(".chart").all()) {
    await chart.scrollIntoViewIfNeeded();
    await chart.evaluate((div) => new Promise((done) => {
      const look = () => (div.dataset.drawn ? done() : setTimeout(look, 30));
      look();
    }));
  }
}

const values = (page, selector) => page.locator(selector).evaluateAll((all) => all.map((e) => Number(e.getAttribute("value"))));
const texts = (page, selector) => page.locator(selector).evaluateAll((all) => all.map((e) => e.textContent));

// All rows of a table over all its pages, converted by `read`.
async function allRows(page, table, read) {
  const rows = [];
  // A collapsed table is filled in shortly after it is opened.
  await page.locator(`${table} tbody tr`).first().waitFor();
  for (;;) {
    rows.push(...await page.locator(`${table} tbody tr`).evaluateAll(read));
    const next = page.locator(`${table} .pager button`).nth(1);
    if (!(await next.isVisible()) || await next.isDisabled()) return rows;
    await next.click();
  }
}

test("every section is there, every chart has marks, no console messages and no requests", async () => {
  for (const viewport of [wide, phone]) {
    for (const colorScheme of ["light", "dark"]) {
      const { page, trouble, close } = await open(demo, { viewport, colorScheme });
      for (const section of sections) assert.equal(await page.locator(`#${section} h2`).count(), 1, section);
      await drawAll(page);
      const charts = await page.locator(".chart").evaluateAll((all) => all.map((div) => ({
        id: div.id, label: div.getAttribute("aria-label"), marks: div.querySelectorAll("path.point, path.js-line, .heatmaplayer image").length,
      })));
      assert.equal(charts.length, 8);
      for (const chart of charts) assert.ok(chart.marks > 0 && chart.label, JSON.stringify(chart));
      const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(needed <= there, `${needed} pixels wide on a screen of ${there}`);
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
      assert.deepEqual(trouble, []);
      await close();
    }
  }
});

test("figures agree with explain and evaluate", async () => {
  const { page, close } = await open(demo);
  const explained = json("explain", demo.model, "--names", demo.names, "--top", "0");
  const learned = json("evaluate", demo.model, "--train", demo.train, demo.test);
  const dot = json("evaluate", "identity", "--train", demo.train, demo.test);
  const figure = async (key) => (await values(page, `#figure-${key}`))[0];
  assert.equal(await figure("error"), learned.error);
  assert.equal(await figure("dot_error"), dot.error);
  for (const [key, kind, name] of [["cosine", "unit", "cosine"], ["tfidf", "tfidf", "tf-idf cosine"]]) {
    const { error, n_wrong } = json("evaluate", "identity", "--preprocess", kind, "--train", demo.train, demo.test);
    assert.equal(await figure(`${key}_error`), error);
    const row = page.locator("#similarities-table tbody tr").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
    assert.equal(Number(await row.locator("data").getAttribute("value")), error);
    assert.equal(await row.locator("td").nth(1).textContent(), String(n_wrong));
  }
  assert.deepEqual(await texts(page, "#similarities-table tbody th"), ["dot product", "cosine", "tf-idf cosine", "learned similarity"]);
  assert.equal(await figure("n_features"), explained.n_features);
  assert.equal(await figure("n_pairs"), explained.n_pairs);
  assert.equal(await figure("n_atoms"), explained.n_atoms);
  assert.equal(await figure("lambda"), explained.lambda);
  assert.equal(await figure("iteration"), explained.iteration);
  assert.equal(await page.locator("#figure-error").textContent(), `${(100 * learned.error).toFixed(1)}%`);

  const features = await allRows(page, "#features-table", (rows) => rows.map((r) => [r.cells[0].textContent, Number(r.querySelector("data").value), Number(r.cells[3].textContent)]));
  assert.deepEqual(features, explained.features.map((f) => [f.name, f.weight, f.n_pairs]));
  const pairs = await allRows(page, "#pairs-table", (rows) => rows.map((r) => [r.cells[0].textContent, r.cells[1].textContent, r.cells[2].textContent, Number(r.querySelector("data").value)]));
  assert.deepEqual(pairs, explained.pairs.map((p) => [p.name_i, p.name_j, p.weight > 0 ? "more similar" : "less similar", p.weight]));

  const byName = (list) => list.map(String).sort();
  for (const [button, evaluation] of [["#errors-learned", learned], ["#errors-dot", dot]]) {
    await page.locator(button).click();
    await page.locator("#confusion-table summary").click();
    const cells = await allRows(page, "#confusion-table", (rows) => rows.map((r) => [r.cells[0].textContent, r.cells[1].textContent, Number(r.querySelector("data").value)]));
    assert.deepEqual(byName(cells), byName(evaluation.confusion.map((c) => [c.class, c.predicted, c.count])));
    assert.match(await page.locator("#errors-words").textContent(), new RegExp(`${evaluation.n_wrong} of 1,000 test rows`));
  }
  await close();
});

test("neighbors and contributions agree with neighbors and explain, and add up", async () => {
  const { page, close } = await open(demo);
  const rows = await page.locator("#row-choice option").evaluateAll((all) => all.map((o) => o.textContent.match(/^row ([\d,]+)/)[1].replace(",", "")));
  for (const at of [0, 7, rows.length - 1]) {
    await page.locator("#row-choice").selectOption({ index: at });
    const row = rows[at];
    assert.equal(await page.locator("#row-detail").getAttribute("data-row"), row);
    for (const [list, model] of [[0, "identity"], [1, demo.model]]) {
      const near = json("neighbors", model, "--train", demo.train, demo.test, "--rows", row, "-k", "6").rows[0].neighbors;
      const shown = await page.locator(".lists > div").nth(list).locator(".neighbor").evaluateAll((cards) => cards.map((card) => ({
        row: Number(card.querySelector(".head span").textContent.match(/row ([\d,]+)/)[1].replace(",", "")),
        class: card.querySelectorAll(".head span")[1].textContent,
        score: Number(card.querySelector("data.score").value),
        contributions: [...card.querySelectorAll(".contributions tbody data")].map((d) => Number(d.value)),
      })));
      assert.deepEqual(shown.map(({ row, class: c, score }) => ({ row, score, class: c })), near.map(({ row, score, class: c }) => ({ row, score, class: c })));
      for (const card of shown) {
        const sum = card.contributions.reduce((a, b) => a + b, 0);
        assert.ok(Math.abs(sum - card.score) <= 1e-9 * Math.max(1, Math.abs(card.score)), `${sum} for ${card.score}`);
      }
      if (model === "identity") continue;
      const explained = json("explain", model, "--pair", `${demo.test}:${row}`, `${demo.train}:${shown[0].row}`);
      assert.deepEqual(shown[0].contributions.slice(0, Math.min(8, explained.contributions.length)), explained.contributions.slice(0, 8).map((c) => c.value));
    }
  }
  await close();
});

test("tables sort by mouse and by keyboard", async () => {
  const { page, close } = await open(demo);
  const names = () => texts(page, "#features-table tbody th");
  const head = page.locator("#features-table thead th").first();
  await head.locator("button").click();
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  const ascending = await names();
  assert.deepEqual(ascending, ascending.slice().sort((a, b) => a.localeCompare(b)));
  await head.locator("button").focus();
  await page.keyboard.press("Enter");
  assert.equal(await head.getAttribute("aria-sort"), "descending");
  const descending = await names();
  assert.deepEqual(descending, descending.slice().sort((a, b) => b.localeCompare(a)));
  const weight = page.locator("#pairs-table thead th").nth(3);
  await weight.locator("button").click();
  assert.equal(await weight.getAttribute("aria-sort"), "ascending");
  const sizes = (await values(page, "#pairs-table tbody data")).map(Math.abs);
  assert.deepEqual(sizes, sizes.slice().sort((a, b) => a - b));
  await close();
});

test("tables and the graph can be searched", async () => {
  const { page, trouble, close } = await open(demo);
  await page.locator("#pairs-table input").fill("STALE");
  const found = await page.locator("#pairs-table tbody tr").evaluateAll((rows) => rows.map((r) => `${r.cells[0].textContent} ${r.cells[1].textContent}`));
  assert.ok(found.length >= 2 && found.every((text) => text.includes("stale")), found.join());
  assert.equal(await page.locator("#pairs-table [role=status]").textContent(), `${found.length} shown`);
  await page.locator("#pairs-table input").fill("no such feature");
  assert.equal(await page.locator("#pairs-table [role=status]").textContent(), "Nothing found");
  await page.locator("#graph-chart").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.getElementById("graph-chart").dataset.drawn);
  await page.locator("#graph-search").fill("stale");
  assert.equal(await page.locator("#graph-found").textContent(), "1 feature found");
  assert.ok((await page.locator("#graph-detail").textContent()).startsWith(`stale: ${found.length} pairs`));
  await page.waitForFunction(() => [...document.querySelectorAll("#graph-chart .textpoint text")].filter((t) => t.textContent).map((t) => t.textContent).join() === "stale");
  assert.deepEqual(trouble, []);
  await close();
});

test("the matrix zooms by buttons and by mouse, from all features to the used ones", async () => {
  const { page, trouble, close } = await open(demo);
  const chart = page.locator("#matrix-chart");
  await chart.scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.getElementById("matrix-chart").dataset.drawn);
  const range = () => chart.evaluate((div) => div.layout.xaxis.range.map(Number));
  const width = async () => { const [a, b] = await range(); return Math.abs(b - a); };
  assert.equal(await width(), 5000);
  await page.locator("#matrix-in").click();
  assert.equal(await width(), 2500);
  await page.locator("#matrix-out").click();
  assert.equal(await width(), 5000);
  await page.locator("#matrix-used").click();
  // M has an entry on the diagonal for each feature, and two for each pair.
  const { n_features: used, n_pairs: pairs } = json("explain", demo.model);
  assert.ok(pairs >= 15 && used >= 12);
  await page.waitForFunction((entries) => document.querySelectorAll("#matrix-chart path.point").length === entries, used + 2 * pairs);
  assert.equal(await width(), used);
  const box = await chart.locator(".nsewdrag").first().boundingBox();
  await page.mouse.move(box.x + 0.2 * box.width, box.y + 0.2 * box.height);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.6 * box.width, box.y + 0.6 * box.height, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction((width) => { const [a, b] = document.getElementById("matrix-chart").layout.xaxis.range; return Math.abs(b - a) < width; }, 0.75 * used);
  await page.locator("#matrix-reset").click();
  assert.equal(await width(), used);
  // Pointing at an entry names the pair and its weight.
  const point = await chart.locator("path.point").first().boundingBox();
  await page.mouse.move(point.x + point.width / 2, point.y + point.height / 2);
  await page.waitForFunction(() => /M = [+\u2212]/.test(document.querySelector("#matrix-chart .hoverlayer")?.textContent ?? ""));
  assert.deepEqual(trouble, []);
  await close();
});

test("rows can be chosen by list, by button, from an error and on the map", async () => {
  const { page, trouble, close } = await open(demo);
  const shown = () => page.locator("#row-detail").getAttribute("data-row");
  await page.locator("#row-choice").selectOption({ index: 3 });
  const third = await shown();
  await page.locator("#row-after").click();
  assert.notEqual(await shown(), third);
  await page.locator("#row-before").click();
  assert.equal(await shown(), third);
  await page.locator("#row-filter").selectOption("wrong");
  assert.match(await page.locator("#row-choice option").first().textContent(), /predicted/);
  const wrong = page.locator("#misclassified-table tbody button").nth(2);
  const row = (await wrong.textContent()).replace("row ", "").replace(",", "");
  await wrong.click();
  assert.equal(await shown(), row);
  assert.match(await page.locator("#row-detail").textContent(), /wrong/);
  const chart = page.locator("#map-learned-chart");
  await chart.scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.getElementById("map-learned-chart").dataset.drawn);
  // Classes can be taken off the map.
  const points = () => chart.locator("path.point").count();
  const all = await points();
  await page.locator("#map-classes button").first().click();
  await page.waitForFunction((n) => document.querySelectorAll("#map-learned-chart path.point").length < n, all);
  await page.locator("#map-classes button").first().click();
  await page.waitForFunction((n) => document.querySelectorAll("#map-learned-chart path.point").length === n, all);
  const inside = await chart.evaluate((div) => div.data[0].customdata.map(Number));
  const listed = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).neighbors.rows.map((q) => q.row));
  const wanted = inside.findIndex((r) => listed.includes(r));
  await chart.evaluate((div, n) => div.emit("plotly_click", { points: [{ customdata: div.data[0].customdata[n] }] }), wanted);
  assert.equal(await shown(), String(inside[wanted]));
  assert.deepEqual(trouble, []);
  await close();
});

test("the training line is the command of the demo", async () => {
  const { page, close } = await open(demo);
  const line = await page.locator("#made-by").textContent();
  assert.match(line, /^hdsl train demo\/train\.svm --valid demo\/valid\.svm --names demo\/names\.txt --lambda /);
  assert.match(line, / -o demo\/model\.hdsl$/);
  await close();
});

test("the objective is a line, and steps are marked on demand", async () => {
  const { page, trouble, close } = await open(demo);
  await page.locator("#run-chart").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.getElementById("run-chart").dataset.drawn);
  const named = () => page.locator("#run-chart").evaluate((div) => div.data.filter((trace) => trace.yaxis === "y").map((trace) => `${trace.name} ${trace.mode}`));
  assert.deepEqual(await named(), ["objective lines"]);
  await page.locator("#run-steps").click();
  assert.equal(await page.locator("#run-steps").getAttribute("aria-pressed"), "true");
  await page.waitForFunction(() => document.getElementById("run-chart").data.some((trace) => trace.name === "forward step"));
  assert.ok((await named()).every((name, at) => (at === 0 ? name === "objective lines" : name.endsWith("step markers"))));
  await page.locator("#run-steps").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("run-chart").data.every((trace) => trace.name !== "forward step"));
  assert.deepEqual(trouble, []);
  await close();
});

test("the row picker shows the beginnings of texts", async () => {
  const { page, trouble, close } = await open(withTexts);
  const options = await texts(page, "#row-choice option");
  const shown = new Map(await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).neighbors.texts.test));
  assert.ok(options.length > 100);
  for (const option of options) {
    const [, row, beginning] = option.match(/^row ([\d,]+), .*?: (.+)$/);
    const text = shown.get(Number(row.replace(",", "")));
    assert.ok(beginning.length <= 60 && text.startsWith(beginning.replace(/\u2026$/, "")), option);
  }
  assert.match(await page.locator("#row-detail blockquote").first().textContent(), /\w+ \w+/);
  assert.deepEqual(trouble, []);
  await close();
});

test("the parts of scores on top of a base add up", async () => {
  const { page, trouble, close } = await open(base);
  const groups = await page.locator("#parts-table tbody tr").evaluateAll((rows) => rows.map((r) => [...r.querySelectorAll("data")].map((d) => Number(d.value))));
  assert.equal(groups.length, 3);
  for (const [ofBase, learned, score] of groups) assert.ok(Math.abs(ofBase + learned - score) < 1e-9);
  assert.match(await page.locator("#parts-words").textContent(), /% come from the base and .*% from the learned atoms/);
  const cards = await page.locator(".lists .neighbor").evaluateAll((all) => all.map((card) => ({
    parts: [...card.querySelectorAll("data.part")].map((d) => Number(d.value)), total: Number(card.querySelector("data.total")?.value ?? 0),
  })));
  assert.ok(cards.length >= 12);
  for (const { parts, total } of cards) assert.ok(Math.abs(parts.reduce((a, b) => a + b, 0) - total) < 1e-9, `${parts} ${total}`);
  assert.deepEqual(await texts(page, "#similarities-table tbody th"), ["base alone", "dot product", "cosine", "tf-idf cosine", "learned similarity"]);
  assert.deepEqual(trouble, []);
  await close();
});

test("rankings are measured, and queries lead to their neighbors", async () => {
  const { page, trouble, close } = await open(judged);
  assert.equal(await page.locator("#judged h2").count(), 1);
  const names = await texts(page, "#judged-table tbody th");
  assert.deepEqual(names, ["dot product", "cosine", "tf-idf cosine", "BM25-weighted cosine", "base alone", "learned similarity"]);
  const learned = await page.locator("#judged-table tbody tr").last().locator("data").evaluateAll((all) => all.map((d) => Number(d.value)));
  assert.equal(learned.length, 5);
  assert.equal((await values(page, "#figure-ndcg"))[0], learned[0]);
  const query = page.locator("#queries-table tbody button").first();
  const row = (await query.textContent()).replace("row ", "");
  await query.click();
  assert.equal(await page.locator("#row-detail").getAttribute("data-row"), row);
  assert.match(await page.locator("#row-detail").textContent(), /relevant, gain 1/);
  assert.doesNotMatch(await page.locator("#missing").textContent(), /Errors/);
  await drawAll(page);
  assert.deepEqual(trouble, []);
  await close();
});

test("tables fit a screen of 400 pixels, or scroll in their own box", async () => {
  for (const report of [demo, hostile, base, judged, withTexts]) {
    const { page, trouble, close } = await open(report, { viewport: narrow });
    await drawAll(page);
    for (const summary of await page.locator("details.table summary").all()) await summary.click();
    await page.locator(".neighbor details").evaluateAll((all) => all.forEach((details) => { details.open = true; }));
    for (const button of await page.locator("#pairs-table tbody .link").all()) await button.click();
    const found = await page.evaluate(() => {
      const { clientWidth, scrollWidth } = document.documentElement;
      const wrong = scrollWidth > clientWidth ? [`the page is ${scrollWidth} wide`] : [];
      const tables = [...document.querySelectorAll("table")].filter((table) => table.getClientRects().length);
      for (const table of tables) {
        const name = table.caption?.textContent;
        const box = table.closest(".scroll") ?? table;
        const { left, right } = box.getBoundingClientRect();
        if (left < 0 || right > clientWidth) wrong.push(`${name}: from ${left} to ${right}`);
        if (box !== table && getComputedStyle(box).overflowX !== "auto") wrong.push(`${name} does not scroll`);
      }
      return { wrong, n: tables.length };
    });
    assert.deepEqual(found.wrong, [], report.page);
    assert.ok(found.n >= 12, `${found.n} tables`);
    assert.deepEqual(trouble, []);
    await close();
  }
});

test("colors can be switched, and charts follow", async () => {
  const { page, trouble, close } = await open(demo);
  await page.locator("#run-chart").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.getElementById("run-chart").dataset.drawn);
  const ink = () => page.locator("#run-chart").evaluate((div) => div.layout.font.color);
  const light = await ink();
  await page.locator("#theme").click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.waitForFunction((before) => document.getElementById("run-chart").layout.font.color !== before, light);
  assert.deepEqual(trouble, []);
  await close();
});

test("hostile names, classes and texts stay text", async () => {
  const { page, trouble, close } = await open(hostile);
  await drawAll(page);
  await page.locator("#row-filter").selectOption("wrong");
  await page.locator("#row-after").click();
  await page.locator("#graph-search").fill("script");
  for (const summary of await page.locator("details.table summary").all()) await summary.click();
  for (const chart of ["#matrix-chart", "#graph-chart", "#map-raw-chart", "#errors-chart"]) {
    await page.locator(chart).scrollIntoViewIfNeeded();
    const box = await page.locator(`${chart} .nsewdrag`).first().boundingBox();
    for (let step = 0; step < 12; step += 1) await page.mouse.move(box.x + (box.width * (step + 0.5)) / 12, box.y + (box.height * (step + 0.5)) / 12);
  }
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("main script").count(), 0);
  assert.equal(await page.locator("main b, main a[href^=javascript]").count(), 0);
  assert.deepEqual(trouble, []);
  // Shown as they are: in a table, in a chart, in a list, in a text.
  const inTable = await allRows(page, "#features-table", (rows) => rows.map((r) => r.cells[0].textContent));
  for (const name of hostileNames) assert.ok(inTable.includes(name.trim()), name);
  await page.locator("#graph-search").fill("");
  await page.locator("#matrix-used").click();
  const ticks = await page.waitForFunction(() => { const all = [...document.querySelectorAll("#matrix-chart .xaxislayer-above .xtick text")].map((t) => t.textContent); return all.length ? all : null; });
  assert.ok((await ticks.jsonValue()).some((t) => t.startsWith("<script>")), String(await ticks.jsonValue()));
  const options = await texts(page, "#row-choice option");
  assert.ok(options.some((o) => o.includes(hostileClasses[0].slice(0, 20))));
  assert.ok((await page.locator("#row-detail blockquote").first().textContent()).includes(hostileText));
  await close();
});

test("a page about a model alone lists the missing input", async () => {
  const { page, trouble, close } = await open(alone);
  await drawAll(page);
  const missing = await page.locator("#missing").textContent();
  assert.match(missing, /--train FILE and --test FILE/);
  assert.equal(await page.locator("#neighbors .note").count(), 1);
  assert.equal(await page.locator("#errors .note").count(), 1);
  assert.equal(await page.locator("#figure-error").count(), 0);
  assert.deepEqual(trouble, []);
  await close();
});

test("a large page has less than 10 MB and works", async () => {
  assert.ok(statSync(large.page).size < 10_000_000);
  const { page, trouble, close } = await open(large);
  const [needed, there] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(needed <= there);
  await drawAll(page);
  await page.locator("#graph-search").fill("word76067");
  assert.match(await page.locator("#graph-found").textContent(), /1 feature found/);
  await page.locator("#pairs-table thead button").first().click();
  await page.locator("#misclassified-table tbody button").first().click();
  assert.match(await page.locator("#row-note").textContent(), /300 of 5,000 test rows/);
  assert.match(await page.locator("#map-caption").textContent(), /2,500 of 5,000/);
  assert.deepEqual(trouble, []);
  await close();
});

test("the page prints with all its charts", async () => {
  const { page, trouble, close } = await open(demo, { colorScheme: "dark" });
  const pdf = await page.pdf({ printBackground: true });
  assert.ok(pdf.length > 50_000, `${pdf.length} bytes`);
  const drawn = await page.locator(".chart[data-drawn]").count();
  assert.equal(drawn, 8);
  assert.deepEqual(trouble, []);
  await close();
});

test("the keyboard reaches the report at once", async () => {
  const { page, close } = await open(demo);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the report");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await close();
});

test("an accessibility checker finds nothing serious", async () => {
  const cases = [
    [demo, wide, "light"], [demo, wide, "dark"], [demo, phone, "light"], [demo, phone, "dark"], [alone, wide, "light"], [hostile, phone, "dark"],
    [judged, wide, "light"], [base, phone, "dark"],
  ];
  for (const [report, viewport, colorScheme] of cases) {
    const { page, close } = await open(report, { viewport, colorScheme });
    await drawAll(page);
    for (const summary of await page.locator("details.table summary").all()) await summary.click();
    // Evaluated from outside the page, whose content security policy does not admit it.
    await page.evaluate(axe);
    // Charts are images with a label, so their marks are not checked.
    const { violations, passes } = await page.evaluate(() => window.axe.run({ exclude: [".chart .svg-container"] }, { resultTypes: ["violations"] }));
    assert.ok(passes.length > 20, "the checker ran");
    const serious = violations.filter((v) => ["serious", "critical"].includes(v.impact));
    const found = serious.map((v) => `${v.id}: ${v.help}; ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
    assert.deepEqual(found, [], `${report.page}, ${colorScheme}, ${viewport.width} wide`);
    await close();
  }
});
