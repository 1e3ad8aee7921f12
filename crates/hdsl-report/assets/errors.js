// Section 8: what is taken for what.

const errors = data.errors;
if (errors) {
  let judge = "learned";
  // A picture of more classes could not be read; those with the most mistakes are drawn.
  const most = 25;
  const wrongIn = new Map();
  const occurring = new Set();
  for (const which of ["learned", "dot"]) {
    for (const [t, g, n] of errors[which].cells) {
      occurring.add(t).add(g);
      if (t !== g && which === "learned") [t, g].forEach((c) => wrongIn.set(c, (wrongIn.get(c) ?? 0) + n));
    }
  }
  const all = [...occurring].sort((a, b) => a - b);
  const drawnClasses = all.length <= most ? all : all.slice().sort((a, b) => (wrongIn.get(b) ?? 0) - (wrongIn.get(a) ?? 0) || a - b).slice(0, most).sort((a, b) => a - b);

  const confusion = chart("errors-chart", `Confusion matrix of ${count(drawnClasses.length, "class")}: rows are true classes, columns the classes given. The same figures are in the table below.`, () => {
    const cells = new Map(errors[judge].cells.map(([t, g, n]) => [`${t},${g}`, n]));
    const totals = new Map();
    errors[judge].cells.forEach(([t, , n]) => totals.set(t, (totals.get(t) ?? 0) + n));
    const at = (t, g) => cells.get(`${t},${g}`) ?? 0;
    // Right ones blue, wrong ones red, by the root of the share of the true class, so that a few mistakes still show.
    const z = drawnClasses.map((t) => drawnClasses.map((g) => (t === g ? 1 : -1) * Math.sqrt(at(t, g) / (totals.get(t) ?? 1))));
    const labels = drawnClasses.map((c) => plain(brief(classes[c], byId("errors-chart").clientWidth < 500 ? 10 : 20)));
    const places = labels.map((_, n) => n);
    const text = drawnClasses.map((t) => drawnClasses.map((g) => (at(t, g) ? thousands(at(t, g)) : "")));
    const words = drawnClasses.map((t) => drawnClasses.map((g) => `${plain(brief(classes[t], 40))} given ${plain(brief(classes[g], 40))}: ${thousands(at(t, g))} of ${thousands(totals.get(t) ?? 0)}`));
    const scale = [[0, color("red")], [0.5, color("paper")], [1, color("blue")]];
    const ticks = { tickmode: "array", tickvals: places, ticktext: labels, showgrid: false, zeroline: false };
    // Numbers are written as marks of their own, since the heat map would fit them to nothing on a phone.
    const written = { x: [], y: [], text: [], color: [] };
    drawnClasses.forEach((t, row) => drawnClasses.forEach((g, column) => {
      if (!text[row][column]) return;
      written.x.push(column); written.y.push(row); written.text.push(text[row][column]);
      written.color.push(Math.abs(z[row][column]) > 0.6 ? color("paper") : color("ink"));
    }));
    const side = Math.min(byId("errors-chart").clientWidth, 680);
    return {
      traces: [
        { type: "heatmap", z, x: places, y: places, customdata: words, hovertemplate: "%{customdata}<extra></extra>", colorscale: scale, zmin: -1, zmax: 1, showscale: false, xgap: 2, ygap: 2 },
        { type: "scatter", mode: "text", x: written.x, y: written.y, text: written.text, textfont: { color: written.color, size: drawnClasses.length > 12 || byId("errors-chart").clientWidth < 500 ? 10 : 13 }, hoverinfo: "skip", showlegend: false },
      ],
      layout: layout({ height: Math.max(320, Math.min(side, 90 + 60 * drawnClasses.length)), xaxis: axis({ ...ticks, side: "top", tickangle: -40, title: { text: "given" } }), yaxis: axis({ ...ticks, autorange: "reversed", title: { text: "true" } }) }),
    };
  });

  function tell() {
    const { error, balanced_error, n_wrong, n_test } = errors[judge];
    say("errors-words", `Under the ${judge === "learned" ? "learned similarity" : "plain dot product"}, ${thousands(n_wrong)} of ${count(n_test, "test row")} get a wrong class: ${percent(error)}. With every class counting the same, it is ${percent(balanced_error)}.`);
    say("errors-caption", `Blue is right, red is wrong, the stronger the larger the share of the true class.${drawnClasses.length < all.length ? ` Of ${all.length} classes, the ${most} with the most mistakes are drawn; the table has all.` : ""}`);
    byId("errors-learned").setAttribute("aria-pressed", String(judge === "learned"));
    byId("errors-dot").setAttribute("aria-pressed", String(judge === "dot"));
    asTable("confusion-table", "What is taken for what, as a table", {
      caption: "True and given classes", page: 25, rows: errors[judge].cells, sort: [2, true], search: ([t, g]) => `${classes[t]} ${classes[g]}`,
      columns: [
        { label: "true class", head: true, text: ([t]) => classes[t] },
        { label: "given", text: ([, g]) => classes[g] },
        { label: "rows", numeric: true, value: (c) => c[2], cell: (c) => el("data", { value: c[2] }, thousands(c[2])) },
        { label: "", text: ([t, g]) => (t === g ? "right" : "wrong") },
      ].map((c) => ({ ...c, label: c.label || "verdict" })),
    });
    confusion.draw();
  }
  byId("errors-learned").addEventListener("click", () => { judge = "learned"; tell(); });
  byId("errors-dot").addEventListener("click", () => { judge = "dot"; tell(); });
  tell();

  table("mistakes-table", {
    caption: `The ${count(errors.mistakes.length, "surest mistake")}${errors.mistakes.length < errors.n_mistakes ? ` of ${thousands(errors.n_mistakes)}` : ""}`,
    columns: [
      { label: "row", numeric: true, value: (m) => m.row, cell: (m) => el("button", { type: "button", class: "link", onclick: () => chooseRow(m.row, true) }, `row ${thousands(m.row)}`) },
      { label: "true class", head: true, text: (m) => classes[m.truth] },
      { label: "given", text: (m) => classes[m.given] },
      { label: "votes for it", numeric: true, value: (m) => m.votes, text: (m) => `${m.votes} of ${errors.k}` },
      { label: "margin", numeric: true, value: (m) => m.margin ?? Infinity, text: (m) => (m.margin === null ? "class never seen" : short(m.margin)) },
    ],
    rows: errors.mistakes, search: (m) => `${m.row} ${classes[m.truth]} ${classes[m.given]}`, page: 12,
  });
}

// For those who measure: milliseconds until words and tables were there.
document.documentElement.dataset.ready = String(Math.round(performance.now()));
