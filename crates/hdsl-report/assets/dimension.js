// Section 5: error by number of features and dimensions.

const dimension = data.dimension;
if (dimension) {
  const { suggestion } = dimension;
  const draw = (id, key, noun) => chart(id, `Error of the iterates by number of ${noun}. The table below contains the same numbers.`, () => {
    const traces = [];
    const line = (points, name, tone, dash, symbol) => {
      if (!points.length) return;
      const sorted = points.slice().sort((a, b) => a[key] - b[key] || a.iteration - b.iteration);
      traces.push({ x: sorted.map((p) => p[key]), y: sorted.map((p) => p.error), customdata: sorted.map((p) => p.iteration), name, type: "scatter", mode: "lines+markers", line: { color: color(tone), dash, width: 2 }, marker: { symbol, size: 7 }, hovertemplate: `%{x} ${noun}, iteration %{customdata}<br>${name} %{y:.1%}<extra></extra>` });
    };
    line(dimension.test, "test error", "accent", "solid", "circle");
    line(dimension.valid, validation, "soft", "dot", "square");
    const shapes = [];
    const annotations = [];
    if (dimension.dot_error !== null) {
      shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: dimension.dot_error, y1: dimension.dot_error, line: { color: color("red"), width: 1.5, dash: "dash" } });
      annotations.push({ xref: "paper", x: 1, y: dimension.dot_error, text: baseline, showarrow: false, xanchor: "right", yanchor: "bottom", font: { color: color("red") } });
    }
    if (suggestion) {
      const x = suggestion.point[key];
      shapes.push({ type: "line", yref: "paper", y0: 0, y1: 1, x0: x, x1: x, line: { color: color("ink"), width: 1.5, dash: "dot" } });
      annotations.push({ yref: "paper", x, y: 1, text: `suggested: ${thousands(x)}`, showarrow: false, xanchor: "left", yanchor: "top", xshift: 4, bgcolor: color("paper") });
    }
    return { traces, layout: layout({ xaxis: axis({ title: { text: noun }, rangemode: "tozero" }), yaxis: axis({ tickformat: ".0%", rangemode: "tozero", title: { text: "error" } }), shapes, annotations, legend: { orientation: "h", x: 0, y: -0.22, yanchor: "top" } }) };
  });
  draw("dimension-features-chart", "n_features", "features");
  draw("dimension-atoms-chart", "n_atoms", "dimensions");
  if (suggestion) {
    const p = suggestion.point;
    const named = suggestion.on_validation ? validation : "test error";
    const size = `${count(p.n_features, "feature")} and ${count(p.n_atoms, "dimension")}`;
    setText("dimension-words", p.iteration === run.chosen
      ? `The model in use has ${size}. Every smaller iterate has a ${named} of more than one percentage point above the lowest.`
      : `Suggested smaller model: iterate ${thousands(p.iteration)}, with ${size}. Its ${named} is ${percent(p.error)}, at most one percentage point above the lowest error of ${percent(suggestion.lowest_error)}. Select it with ${suggestion.selected_by}.`
      + (suggestion.on_validation ? "" : " It was selected on the test rows, so its test error is optimistic.")
      + (dimension.n_evaluated < dimension.n_test ? ` The test errors of the iterates are computed on a sample of ${thousands(dimension.n_evaluated)} of ${thousands(dimension.n_test)} test rows.` : ""));
  }
  const rows = [...dimension.test.map((p) => ({ ...p, on: "test" })), ...dimension.valid.map((p) => ({ ...p, on: "validation" }))];
  asTable("dimension-table", "Errors of the iterates as a table", {
    caption: "Errors of the iterates", page: 25, rows,
    columns: [
      { label: "iteration", numeric: true, head: true, value: (p) => p.iteration, text: (p) => thousands(p.iteration) },
      { label: "features", numeric: true, value: (p) => p.n_features, text: (p) => thousands(p.n_features) },
      { label: "dimensions", numeric: true, value: (p) => p.n_atoms, text: (p) => thousands(p.n_atoms) },
      { label: "rows", text: (p) => p.on },
      { label: "error", numeric: true, value: (p) => p.error, text: (p) => percent(p.error) },
    ],
  });
}
