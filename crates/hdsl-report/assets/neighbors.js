// Section 7: the neighbors of a test row, with the contributions to their scores.

const neighbors = data.neighbors;
const rowNumbers = new Map((neighbors?.rows ?? []).map((q, at) => [q.row, at]));
const texts = neighbors?.texts ? { test: new Map(neighbors.texts.test), train: new Map(neighbors.texts.train) } : null;

// Assigned below; other sections call it to show a row.
let chooseRow = () => {};

if (neighbors) {
  const hasClasses = neighbors.rows.some((q) => q.class !== null && q.predicted_by_learned !== null);
  const filters = [
    ["all", "all on this page", () => true],
    ...(hasClasses ? [
      ["wrong", "misclassified by the learned similarity", (q) => q.predicted_by_learned !== q.class],
      ["corrected", `misclassified by the ${baseline} only`, (q) => q.predicted_by_dot !== q.class && q.predicted_by_learned === q.class],
      ["worsened", "misclassified by the learned similarity only", (q) => q.predicted_by_dot === q.class && q.predicted_by_learned !== q.class],
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
      const label = q.class === null ? "" : `, ${shorten(classes[q.class], 30)}`;
      const error = hasClasses && q.predicted_by_learned !== q.class ? `, predicted ${shorten(classes[q.predicted_by_learned], 30)}` : "";
      const beginning = texts?.test.get(q.row)?.replace(/\s+/g, " ").trim();
      return el("option", { value: String(at) }, `row ${thousands(q.row)}${label}${error}${beginning ? `: ${shorten(beginning, 60)}` : ""}`);
    }));
  }

  // The features of a contribution, and the rows that contain them.
  function describeContribution([i, j, which]) {
    const [a, b] = [el("strong", {}, names[i]), el("strong", {}, names[j])];
    if (which === 0) return [a, " in both rows"];
    if (which === 4) return [a, " in both rows (base)"];
    if (which === 1) return [a, " in the test row, ", b, " in the training row"];
    if (which === 2) return [b, " in the test row, ", a, " in the training row"];
    return [a, " and ", b, " in both rows"];
  }

  // A text in which the contributing words are highlighted. Words are split as by `hdsl vectorize`.
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
  // Words of a column have its name before them, as in `body:delicious`.
  const bare = (name) => name.slice(name.indexOf(":") + 1);
  const wordsOf = (list) => new Set(list.flatMap((neighbor) => neighbor.contributions.flatMap(([i, j]) => [names[i], names[j], bare(names[i]), bare(names[j])])));

  // A horizontal bar for a contribution.
  function amount(value, largest) {
    const bar = el("i", { class: value > 0 ? "plus" : "minus" });
    bar.style.width = `${50 * Math.min(1, Math.abs(value) / largest)}%`;
    return el("td", { class: "amount", "aria-hidden": "true" }, el("span", {}, bar));
  }

  function card(neighbor, rank, truth, change) {
    const { row, score, contributions, rest } = neighbor;
    // With a base, the parts of the score, and whether the neighbor is in one of the two lists only.
    const parts = neighbor.base_score === undefined ? null : ` = ${short(neighbor.base_score)} base ${signed(score - neighbor.base_score)} learned`;
    const known = truth !== null && neighbor.class !== null;
    const result = !known ? "" : neighbor.class === truth ? "right" : "wrong";
    const largest = Math.max(...contributions.map((c) => Math.abs(c[3])), Math.abs(rest[1]), 1e-300);
    const number = (value, attributes = {}) => el("td", { class: "numeric" }, el("data", { ...attributes, value }, signed(value)));
    const line = (value, ...label) => el("tr", {}, el("th", { scope: "row" }, ...label), amount(value, largest), number(value));
    const lines = contributions.map((c) => line(c[3], ...describeContribution(c)));
    if (rest[0]) lines.push(line(rest[1], `${thousands(rest[0])} more`));
    const sum = (label, value) => el("tr", { class: "part" }, el("th", { scope: "row" }, label), el("td", {}), number(value, { class: "part" }));
    const sums = neighbor.base_score === undefined ? [] : [sum("base in total", neighbor.base_score), sum("learned in total", score - neighbor.base_score)];
    const total = el("tfoot", {}, ...sums, el("tr", {}, el("th", { scope: "row" }, "total"), el("td", {}), number(score, { class: "total" })));
    const explanation = contributions.length
      ? el("table", { class: "contributions" }, el("caption", { class: "hidden" }, `Contributions to the score of training row ${row}`), el("tbody", {}, ...lines), total)
      : el("p", { class: "small" }, "There are no contributions: the score is 0.");
    const text = texts?.train.get(row);
    return el("li", { class: `neighbor ${result}` },
      el("p", { class: "head" },
        el("span", {}, `${rank}. training row ${thousands(row)}`),
        neighbor.class === null ? null : el("span", {}, classes[neighbor.class]),
        known ? el("span", { class: `match ${result}` }, result === "right" ? "\u2713 same class" : "\u2717 different class") : null,
        neighbor.gain === undefined ? null : el("span", { class: neighbor.gain > 0 ? "match right" : "match wrong" }, neighbor.gain > 0 ? `\u2713 relevant, gain ${short(neighbor.gain)}` : "\u2717 judged not relevant"),
        neighbor.only_here ? el("span", { class: "change" }, change) : null),
      text === undefined ? null : marked(text, wordsOf([neighbor])),
      el("details", { open: rank <= 2 }, el("summary", {}, "score ", el("data", { class: "score", value: score }, short(score)), parts), explanation));
  }

  function show(at) {
    const q = neighbors.rows[at];
    const prediction = (code) => (code === null ? "" : `predicted ${classes[code]}${q.class === null ? "" : code === q.class ? ", correct" : ", wrong"}`);
    const list = (title, neighbors, code, change) => el("div", {}, el("h4", {}, title), el("p", { class: "small" }, prediction(code)), el("ol", {}, ...neighbors.map((n, rank) => card(n, rank + 1, q.class, change))));
    const text = texts?.test.get(q.row);
    byId("row-detail").replaceChildren(
      el("div", { class: "query" },
        el("h3", {}, `Test row ${thousands(q.row)}${q.class === null ? "" : `, class ${classes[q.class]}`}`),
        text === undefined ? null : marked(text, wordsOf([...q.dot, ...q.learned]))),
      el("div", { class: "lists" }, list(capitalized(baseline), q.dot, q.predicted_by_dot, "removed by learning"), list("Learned similarity", q.learned, q.predicted_by_learned, "added by learning")));
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
  filter.addEventListener("change", () => { fill(); if (choice.options.length) show(current()); else byId("row-detail").replaceChildren(el("p", { class: "note" }, "No rows of this kind are on the page.")); });
  choice.addEventListener("change", () => show(current()));
  byId("row-before").addEventListener("click", () => step(-1));
  byId("row-after").addEventListener("click", () => step(1));

  chooseRow = (row, jump) => {
    const at = rowNumbers.get(row);
    if (at === undefined) {
      setText("row-note", `Row ${thousands(row)} is not on this page, which contains a sample of the test rows.`);
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
    setText("row-note", `${all ? `The page contains all ${count(neighbors.n_test, "test row")}.` : `The page contains ${thousands(neighbors.rows.length)} of ${thousands(neighbors.n_test)} test rows: misclassified rows, rows that only the ${baseline} misclassifies, and a sample of the others.`} The neighbors are the nearest of ${count(neighbors.n_train, "training row")}. ${neighbors.rule}`
      + (neighbors.texts?.n_cut ? ` ${count(neighbors.texts.n_cut, "text")} longer than ${thousands(neighbors.texts.bytes)} bytes ${neighbors.texts.n_cut === 1 ? "is" : "are"} cut.` : ""));
  }
  note();
  fill();
  // The first row shown is one that only the dot product misclassifies.
  const first = hasClasses ? Math.max(0, neighbors.rows.findIndex((q) => q.predicted_by_dot !== q.class && q.predicted_by_learned === q.class)) : 0;
  choice.value = String(first);
  show(first);
}
