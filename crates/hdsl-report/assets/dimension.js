// Section 5: error against features and dimensions.

const dimension = data.dimension;
if (dimension) {
  const cut = dimension.cut;
  const draw = (id, key, word) => chart(id, `Error against the number of ${word}, along the path of training. The same figures are in the table below.`, () => {
    const traces = [];
    const line = (points, name, tone, dash, symbol) => {
      if (!points.length) return;
      const sorted = points.slice().sort((a, b) => a[key] - b[key] || a.iteration - b.iteration);
      traces.push({ x: sorted.map((p) => p[key]), y: sorted.map((p) => p.error), customdata: sorted.map((p) => p.iteration), name, type: "scatter", mode: "lines+markers", line: { color: color(tone), dash, width: 2 }, marker: { symbol, size: 7 }, hovertemplate: `%{x} ${word}, iteration %{customdata}<br>${name} %{y:.1%}<extra></extra>` });
    };
    line(dimension.test, "test error", "accent", "solid", "circle");
    line(dimension.valid, "validation error", "soft", "dot", "square");
    const shapes = [];
    const annotations = [];
    if (dimension.dot_error !== null) {
      shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: dimension.dot_error, y1: dimension.dot_error, line: { color: color("red"), width: 1.5, dash: "dash" } });
      annotations.push({ xref: "paper", x: 1, y: dimension.dot_error, text: "dot product", showarrow: false, xanchor: "right", yanchor: "bottom", font: { color: color("red") } });
    }
    if (cut) {
      shapes.push({ type: "line", yref: "paper", y0: 0, y1: 1, x0: cut.point[key], x1: cut.point[key], line: { color: color("ink"), width: 1.5, dash: "dot" } });
      annotations.push({ yref: "paper", x: cut.point[key], y: 1, text: `cut here: ${thousands(cut.point[key])}`, showarrow: false, xanchor: "left", yanchor: "top", xshift: 4, bgcolor: color("paper") });
    }
    return { traces, layout: layout({ xaxis: axis({ title: { text: word }, rangemode: "tozero" }), yaxis: axis({ tickformat: ".0%", rangemode: "tozero", title: { text: "error" } }), shapes, annotations, legend: { orientation: "h", x: 0, y: -0.22, yanchor: "top" } }) };
  });
  draw("dimension-features-chart", "n_features", "features");
  draw("dimension-atoms-chart", "n_atoms", "dimensions");
  if (cut) {
    const p = cut.point;
    const whole = p.iteration === run.chosen;
    say("dimension-words", whole ? `The model in use, with ${count(p.n_features, "feature")} in ${count(p.n_atoms, "dimension")}, cannot be made smaller without losing more than one percentage point on ${cut.by_valid ? "validation" : "test"} rows.` : `With ${count(p.n_features, "feature")} in ${count(p.n_atoms, "dimension")} the error on ${cut.by_valid ? "validation" : "test"} rows is ${percent(p.error)}, at most one percentage point above the lowest, ${percent(cut.best)}. `
      + `A reader who wants a smaller model could cut there: --iteration ${p.iteration}.`
      + (cut.by_valid ? "" : " This is a look back: a model chosen by test rows looks better than it is.")
      + (dimension.n_judged && dimension.n_judged < dimension.n_test ? ` Along the path, ${thousands(dimension.n_judged)} of ${thousands(dimension.n_test)} test rows were judged.` : ""));
  }
  const rows = [...dimension.test.map((p) => ({ ...p, on: "test" })), ...dimension.valid.map((p) => ({ ...p, on: "validation" }))];
  asTable("dimension-table", "Errors along the path as a table", {
    caption: "Errors along the path", page: 25, rows,
    columns: [
      { label: "iteration", numeric: true, head: true, value: (p) => p.iteration, text: (p) => thousands(p.iteration) },
      { label: "features", numeric: true, value: (p) => p.n_features, text: (p) => thousands(p.n_features) },
      { label: "dimensions", numeric: true, value: (p) => p.n_atoms, text: (p) => thousands(p.n_atoms) },
      { label: "rows", text: (p) => p.on },
      { label: "error", numeric: true, value: (p) => p.error, text: (p) => percent(p.error) },
    ],
  });
}
