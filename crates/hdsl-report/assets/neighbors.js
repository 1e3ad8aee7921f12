// Section 7: the neighbors of a test row, and why.

const neighbors = data.neighbors;
const rowNumbers = new Map((neighbors?.rows ?? []).map((q, at) => [q.row, at]));
const texts = neighbors?.texts ? { test: new Map(neighbors.texts.test), train: new Map(neighbors.texts.train) } : null;

// Set by the part below; other sections call it to show a row.
let chooseRow = () => {};

if (neighbors) {
  const judged = neighbors.rows.some((q) => q.class !== null && q.by_learned !== null);
  const filters = [
    ["all", "all on this page", () => true],
    ...(judged ? [
      ["wrong", "wrong under the learned similarity", (q) => q.by_learned !== q.class],
      ["cured", "wrong under the dot product only", (q) => q.by_dot !== q.class && q.by_learned === q.class],
      ["spoiled", "wrong under the learned similarity only", (q) => q.by_dot === q.class && q.by_learned !== q.class],
    ] : []),
  ];
  const filter = byId("row-filter");
  const choice = byId("row-choice");
  for (const [key, label, has] of filters) {
    const n = neighbors.rows.filter(has).length;
    filter.append(el("option", { value: key }, `${label} (${thousands(n)})`));
  }

  function fill() {
    const has = filters.find((f) => f[0] === filter.value)[2];
    const listed = neighbors.rows.flatMap((q, at) => (has(q) ? [at] : []));
    choice.replaceChildren(...listed.map((at) => {
      const q = neighbors.rows[at];
      const kind = q.class === null ? "" : `, ${brief(classes[q.class], 30)}`;
      const mistake = judged && q.by_learned !== q.class ? `, taken for ${brief(classes[q.by_learned], 30)}` : "";
      return el("option", { value: String(at) }, `row ${thousands(q.row)}${kind}${mistake}`);
    }));
  }

  // What two rows share, in words. `here` is the test row.
  function reason([i, j, way]) {
    const [a, b] = [names[i], names[j]];
    if (way === 0) return ["both have ", el("strong", {}, a)];
    if (way === 1) return [el("strong", {}, a), " here, ", el("strong", {}, b), " there"];
    if (way === 2) return [el("strong", {}, b), " here, ", el("strong", {}, a), " there"];
    return [el("strong", {}, a), " here, ", el("strong", {}, b), " there, and the other way round"];
  }

  // A text with the words that count marked. Words are cut as `hdsl vectorize` cuts them.
  function marked(text, words) {
    const out = [];
    let last = 0;
    for (const found of text.matchAll(/[\p{L}\p{N}_]{2,}/gu)) {
      if (!words.has(found[0]) && !words.has(found[0].toLowerCase())) continue;
      out.push(text.slice(last, found.index), el("mark", {}, found[0]));
      last = found.index + found[0].length;
    }
    out.push(text.slice(last));
    return el("blockquote", { tabindex: "0" }, ...out);
  }
  const wordsOf = (list) => new Set(list.flatMap((near) => near.why.flatMap(([i, j]) => [names[i], names[j]])));

  function amount(value, most) {
    const bar = el("i", { class: value > 0 ? "plus" : "minus" });
    bar.style.width = `${50 * Math.min(1, Math.abs(value) / most)}%`;
    return el("td", { class: "amount", "aria-hidden": "true" }, el("span", {}, bar));
  }

  function card(near, rank, truth) {
    const known = truth !== null && near.class !== null;
    const right = known && near.class === truth;
    const most = Math.max(...near.why.map((w) => Math.abs(w[3])), Math.abs(near.rest[1]), 1e-300);
    const lines = near.why.map((w) => el("tr", {}, el("th", { scope: "row" }, ...reason(w)), amount(w[3], most), el("td", { class: "numeric" }, el("data", { value: w[3] }, signed(w[3])))));
    if (near.rest[0]) lines.push(el("tr", {}, el("th", { scope: "row" }, `${thousands(near.rest[0])} more`), amount(near.rest[1], most), el("td", { class: "numeric" }, el("data", { value: near.rest[1] }, signed(near.rest[1])))));
    const total = el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "in all"), el("td", {}), el("td", { class: "numeric" }, el("data", { class: "total", value: near.score }, signed(near.score)))));
    const why = near.why.length
      ? el("table", { class: "reasons" }, el("caption", { class: "hidden" }, `What the score of training row ${near.row} is made of`), el("tbody", {}, ...lines), total)
      : el("p", { class: "small" }, "They share nothing that counts: the score is 0.");
    const text = texts?.train.get(near.row);
    return el("li", { class: `near ${known ? (right ? "right" : "wrong") : ""}` },
      el("p", { class: "head" },
        el("span", {}, `${rank}. training row ${thousands(near.row)}`),
        near.class === null ? null : el("span", {}, classes[near.class]),
        known ? el("span", { class: `verdict ${right ? "right" : "wrong"}` }, right ? "\u2713 same class" : "\u2717 other class") : null),
      text === undefined ? null : marked(text, wordsOf([near])),
      el("details", { open: rank <= 2 }, el("summary", {}, "score ", el("data", { class: "score", value: near.score }, short(near.score)), ", made of"), why));
  }

  function show(at) {
    const q = neighbors.rows[at];
    const given = (code) => (code === null ? "" : code === q.class ? `given ${classes[code]}, right` : q.class === null ? `given ${classes[code]}` : `given ${classes[code]}, wrong`);
    const list = (title, near, code) => el("div", {}, el("h4", {}, title), el("p", { class: "small" }, given(code)), el("ol", {}, ...near.map((n, rank) => card(n, rank + 1, q.class))));
    const text = texts?.test.get(q.row);
    byId("row-detail").replaceChildren(
      el("div", { class: "query" },
        el("h3", {}, `Test row ${thousands(q.row)}${q.class === null ? "" : `, ${classes[q.class]}`}`),
        text === undefined ? null : marked(text, wordsOf([...q.dot, ...q.learned]))),
      el("div", { class: "lists" }, list("Under the plain dot product", q.dot, q.by_dot), list("Under the learned similarity", q.learned, q.by_learned)));
    byId("row-detail").dataset.row = q.row;
    const options = [...choice.options].map((o) => Number(o.value));
    byId("row-before").disabled = options.indexOf(at) <= 0;
    byId("row-after").disabled = options.indexOf(at) >= options.length - 1;
  }
  const current = () => Number(choice.value);
  function step(by) {
    const next = choice.selectedIndex + by;
    if (next < 0 || next >= choice.options.length) return;
    choice.selectedIndex = next;
    show(current());
  }
  filter.addEventListener("change", () => { fill(); if (choice.options.length) show(current()); else byId("row-detail").replaceChildren(el("p", { class: "note" }, "There is no such row.")); });
  choice.addEventListener("change", () => show(current()));
  byId("row-before").addEventListener("click", () => step(-1));
  byId("row-after").addEventListener("click", () => step(1));

  chooseRow = (row, jump) => {
    const at = rowNumbers.get(row);
    if (at === undefined) {
      say("row-note", `Row ${thousands(row)} is not among those on this page.`);
      return;
    }
    filter.value = "all";
    fill();
    choice.value = String(at);
    note();
    show(at);
    if (jump) { byId("neighbors").scrollIntoView(); byId("row-detail").focus({ preventScroll: true }); }
  };
  function note() {
    const all = neighbors.rows.length === neighbors.n_test;
    say("row-note", `${all ? `All ${count(neighbors.n_test, "test row")} are here.` : `${thousands(neighbors.rows.length)} of ${thousands(neighbors.n_test)} test rows are on this page: mistakes first, then rows the dot product gets wrong, then others evenly spaced.`} Neighbors are sought among ${count(neighbors.n_train, "training row")}; ${neighbors.rule}.`
      + (neighbors.texts?.n_cut ? ` ${count(neighbors.texts.n_cut, "text")} cut after about ${thousands(neighbors.texts.bytes)} letters.` : ""));
  }
  note();
  fill();
  // A row worth looking at first: one that learning has put right.
  const first = judged ? Math.max(0, neighbors.rows.findIndex((q) => q.by_dot !== q.class && q.by_learned === q.class)) : 0;
  choice.value = String(first);
  show(first);
}
