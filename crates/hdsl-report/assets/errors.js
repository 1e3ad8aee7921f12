// Section 8: errors by similarity, confusion matrices, precision and recall per class, misclassified rows.

const errors = data.errors;
if (errors) {
  let similarity = "learned";
  // With more classes, the chart shows those with the most errors.
  const maxClasses = 25;
  const nWrong = new Map();
  const occurring = new Set();
  for (const which of ["learned", "dot"]) {
    for (const [t, p, n] of errors[which].cells) {
      occurring.add(t).add(p);
      if (t !== p && which === "learned") [t, p].forEach((c) => nWrong.set(c, (nWrong.get(c) ?? 0) + n));
    }
  }
  const all = [...occurring].sort((a, b) => a - b);
  const drawnClasses = all.length <= maxClasses ? all : all.slice().sort((a, b) => (nWrong.get(b) ?? 0) - (nWrong.get(a) ?? 0) || a - b).slice(0, maxClasses).sort((a, b) => a - b);

  const confusion = chart("errors-chart", `Confusion matrix of ${count(drawnClasses.length, "class")}: rows are true classes, columns are predicted classes. The table below contains the same numbers.`, () => {
    const cells = new Map(errors[similarity].cells.map(([t, p, n]) => [`${t},${p}`, n]));
    const totals = new Map();
    errors[similarity].cells.forEach(([t, , n]) => totals.set(t, (totals.get(t) ?? 0) + n));
    const at = (t, p) => cells.get(`${t},${p}`) ?? 0;
    // Correct cells are blue, wrong cells red. The intensity is the root of the share of the true class, so that rare errors are
    // visible.
    const z = drawnClasses.map((t) => drawnClasses.map((p) => (t === p ? 1 : -1) * Math.sqrt(at(t, p) / (totals.get(t) ?? 1))));
    const labels = drawnClasses.map((c) => escapeMarkup(shorten(classes[c], byId("errors-chart").clientWidth < 500 ? 10 : 20)));
    const positions = labels.map((_, n) => n);
    const text = drawnClasses.map((t) => drawnClasses.map((p) => (at(t, p) ? thousands(at(t, p)) : "")));
    const hover = drawnClasses.map((t) => drawnClasses.map((p) => `true class ${escapeMarkup(shorten(classes[t], 40))}<br>predicted ${escapeMarkup(shorten(classes[p], 40))}<br>${thousands(at(t, p))} of ${thousands(totals.get(t) ?? 0)}`));
    const scale = [[0, color("red")], [0.5, color("paper")], [1, color("blue")]];
    const ticks = { tickmode: "array", tickvals: positions, ticktext: labels, showgrid: false, zeroline: false };
    // Numbers are a trace of their own, since the heat map would shrink them on small screens.
    const written = { x: [], y: [], text: [], color: [] };
    drawnClasses.forEach((t, row) => drawnClasses.forEach((p, column) => {
      if (!text[row][column]) return;
      written.x.push(column); written.y.push(row); written.text.push(text[row][column]);
      written.color.push(Math.abs(z[row][column]) > 0.6 ? color("paper") : color("ink"));
    }));
    const side = Math.min(byId("errors-chart").clientWidth, 680);
    return {
      traces: [
        { type: "heatmap", z, x: positions, y: positions, customdata: hover, hovertemplate: "%{customdata}<extra></extra>", colorscale: scale, zmin: -1, zmax: 1, showscale: false, xgap: 2, ygap: 2 },
        { type: "scatter", mode: "text", x: written.x, y: written.y, text: written.text, textfont: { color: written.color, size: drawnClasses.length > 12 || byId("errors-chart").clientWidth < 500 ? 10 : 13 }, hoverinfo: "skip", showlegend: false },
      ],
      layout: layout({ height: Math.max(320, Math.min(side, 90 + 60 * drawnClasses.length)), xaxis: axis({ ...ticks, side: "top", tickangle: -40, title: { text: "predicted class" } }), yaxis: axis({ ...ticks, autorange: "reversed", title: { text: "true class" } }) }),
    };
  });

  const compared = [
    { name: baseline, ...errors.dot }, ...errors.references, { name: "learned similarity", ...errors.learned },
  ];
  table("similarities-table", {
    caption: "Errors by similarity", rows: compared,
    columns: [
      { label: "similarity", head: true, text: (s) => s.name },
      { label: "error", numeric: true, value: (s) => s.error, cell: (s) => el("data", { value: s.error }, percent(s.error)) },
      { label: "wrong rows", numeric: true, value: (s) => s.n_wrong, text: (s) => thousands(s.n_wrong) },
      { label: "balanced error", numeric: true, value: (s) => s.balanced_error, text: (s) => percent(s.balanced_error) },
      { label: "mean F1", numeric: true, value: (s) => s.macro_f1, text: (s) => s.macro_f1.toFixed(3) },
    ],
  });

  function update() {
    const { error, balanced_error, macro_f1, n_wrong, n_test } = errors[similarity];
    setText("errors-words", `Under the ${similarity === "learned" ? "learned similarity" : baseline}, ${thousands(n_wrong)} of ${count(n_test, "test row")} are misclassified: the error is ${percent(error)}, the balanced error (mean over classes) ${percent(balanced_error)}, the mean F1 of the classes ${macro_f1.toFixed(3)}.`
      + (errors.changes ? ` The learned part corrects ${count(errors.changes[0], "error")} of the base alone and adds ${thousands(errors.changes[1])}.` : ""));
    setText("errors-caption", `Blue cells are correct predictions, red cells are errors; the intensity shows the share of the true class.${drawnClasses.length < all.length ? ` The chart shows the ${maxClasses} classes with the most errors, of ${all.length}; the table contains all.` : ""}`);
    byId("errors-learned").setAttribute("aria-pressed", String(similarity === "learned"));
    byId("errors-dot").setAttribute("aria-pressed", String(similarity === "dot"));
    asTable("confusion-table", "Confusion matrix as a table", {
      caption: "True and predicted classes", page: 25, rows: errors[similarity].cells, sort: [2, true], search: ([t, p]) => `${classes[t]} ${classes[p]}`,
      columns: [
        { label: "true class", head: true, text: ([t]) => classes[t] },
        { label: "predicted class", text: ([, p]) => classes[p] },
        { label: "rows", numeric: true, value: (c) => c[2], cell: (c) => el("data", { value: c[2] }, thousands(c[2])) },
        { label: "result", text: ([t, p]) => (t === p ? "correct" : "wrong") },
      ],
    });
    const share = (v) => (v === null ? "none" : percent(v));
    table("class-table", {
      caption: "Precision, recall and F1 of each class", page: 25, rows: errors[similarity].classes, sort: [5, false], search: (c) => classes[c.class],
      columns: [
        { label: "class", head: true, text: (c) => classes[c.class] },
        { label: "test rows", numeric: true, value: (c) => c.n_true, text: (c) => thousands(c.n_true) },
        { label: "predicted", numeric: true, value: (c) => c.n_predicted, text: (c) => thousands(c.n_predicted) },
        { label: "precision", numeric: true, value: (c) => c.precision, text: (c) => share(c.precision) },
        { label: "recall", numeric: true, value: (c) => c.recall, text: (c) => share(c.recall) },
        { label: "F1", numeric: true, value: (c) => c.f1, text: (c) => c.f1.toFixed(3) },
      ],
    });
    confusion.draw();
  }
  byId("errors-learned").addEventListener("click", () => { similarity = "learned"; update(); });
  byId("errors-dot").addEventListener("click", () => { similarity = "dot"; update(); });
  update();

  const { misclassified, n_misclassified: total } = errors;
  table("misclassified-table", {
    caption: `${count(misclassified.length, "misclassified row")}${misclassified.length < total ? ` of ${thousands(total)}` : ""}`,
    columns: [
      { label: "row", numeric: true, value: (m) => m.row, cell: (m) => el("button", { type: "button", class: "link", onclick: () => chooseRow(m.row, true) }, `row ${thousands(m.row)}`) },
      { label: "true class", head: true, text: (m) => classes[m.class] },
      { label: "predicted class", text: (m) => classes[m.predicted] },
      { label: "votes", numeric: true, value: (m) => m.votes, text: (m) => `${m.votes} of ${errors.k}` },
      { label: "margin", numeric: true, value: (m) => m.margin ?? Infinity, text: (m) => (m.margin === null ? "class not in training rows" : short(m.margin)) },
    ],
    rows: misclassified, search: (m) => `${m.row} ${classes[m.class]} ${classes[m.predicted]}`, page: 12,
  });
}
