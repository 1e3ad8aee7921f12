// Section 3: the non-zero entries of M.

const { features, pairs } = data.entries;
const nUsed = features.id.length;

// The chart of the used features is ordered by the groups of the graph, so that blocks are visible.
const orderInMatrix = features.id.map((_, at) => at).sort((a, b) => data.graph.group[a] - data.graph.group[b] || a - b);
const positionInMatrix = [];
orderInMatrix.forEach((at, position) => { positionInMatrix[features.id[at]] = position; });

let matrixView = "used";
function matrixEntries() {
  const position = matrixView === "all" ? (id) => data.names.feature[id] : (id) => positionInMatrix[id];
  const plus = { x: [], y: [], text: [], size: [] };
  const minus = { x: [], y: [], text: [], size: [] };
  const add = (i, j, weight, text) => {
    const side = weight > 0 ? plus : minus;
    side.x.push(position(j)); side.y.push(position(i)); side.size.push(Math.abs(weight)); side.text.push(text);
  };
  features.id.forEach((id, at) => add(id, id, features.weight[at], `${escapeMarkup(shorten(names[id], 60))}<br>M = ${signed(features.weight[at])}`));
  pairs.i.forEach((i, at) => {
    const [j, weight] = [pairs.j[at], pairs.weight[at]];
    const text = `${escapeMarkup(shorten(names[i], 60))} and ${escapeMarkup(shorten(names[j], 60))}<br>M = ${signed(weight)}, ${effect(weight)}`;
    add(i, j, weight, text);
    add(j, i, weight, text);
  });
  return [["more similar (M > 0)", "blue", "square", plus], ["less similar (M < 0)", "red", "square", minus]];
}

const matrixSpan = () => (matrixView === "all" ? data.entries.n_features : nUsed);
const matrixRange = () => [[-0.5, matrixSpan() - 0.5], [matrixSpan() - 0.5, -0.5]];

const matrixChart = chart("matrix-chart", `The matrix M: ${count(nUsed, "diagonal element")} and ${count(pairs.i.length, "feature pair")}, positive entries in blue and negative entries in red. The tables of section 4 contain the same numbers.`, () => {
  const largest = Math.max(...pairs.weight.map(Math.abs), ...features.weight, 1e-300);
  const side = Math.min(byId("matrix-chart").clientWidth, 720);
  const fit = (side - 120) / matrixSpan();
  const size = matrixView === "all" ? (nUsed > 300 ? 3 : 5) : Math.max(3, Math.min(34, 0.92 * fit));
  const traces = matrixEntries().map(([name, tone, symbol, side]) => ({
    x: side.x, y: side.y, text: side.text, name, type: "scatter", mode: "markers", hovertemplate: "%{text}<extra></extra>",
    marker: { symbol, color: color(tone), size, opacity: side.size.map((s) => 0.5 + 0.5 * Math.sqrt(s / largest)), line: { width: 0 } },
  }));
  const named = matrixView === "used" && nUsed <= 40;
  const small = byId("matrix-chart").clientWidth < 500;
  const ticks = named ? { tickmode: "array", tickvals: orderInMatrix.map((_, position) => position), ticktext: orderInMatrix.map((at) => escapeMarkup(shorten(names[features.id[at]], small ? 9 : 16))), tickfont: { size: nUsed > 24 || small ? 10 : 12 } } : { showticklabels: matrixView === "all", nticks: 6, tickformat: ",d" };
  const [rx, ry] = matrixRange();
  return {
    traces,
    layout: layout({
      height: Math.max(340, Math.min(side, 720)),
      dragmode: "zoom",
      xaxis: axis({ range: rx, side: "top", showgrid: named, zeroline: false, mirror: true, showline: true, constrain: "domain", tickangle: named ? -60 : 0, ...ticks }),
      yaxis: axis({ range: ry, showgrid: named, zeroline: false, mirror: true, showline: true, scaleanchor: "x", constrain: "domain", ...ticks }),
      legend: { orientation: "h", x: 0, y: -0.02, yanchor: "top" },
    }),
  };
}, { recreate: true });

function showMatrix(view) {
  matrixView = view;
  byId("matrix-all").setAttribute("aria-pressed", String(view === "all"));
  byId("matrix-used").setAttribute("aria-pressed", String(view === "used"));
  setText("matrix-caption", view === "all"
    ? `Rows and columns are all ${thousands(data.entries.n_features)} features, by index from 0. Drag a box to zoom in, double-click to zoom out.`
    : `Rows and columns are the ${count(nUsed, "feature")} in use, ordered by the groups of section 4.${nUsed > 40 ? " Point at an entry to see the names." : ""} Drag a box to zoom in, double-click to zoom out.`);
  matrixChart.draw();
}
byId("matrix-all").textContent = `All ${thousands(data.entries.n_features)} features`;
byId("matrix-used").textContent = `${thousands(nUsed)} features in use`;
byId("matrix-all").addEventListener("click", () => showMatrix("all"));
byId("matrix-used").addEventListener("click", () => showMatrix("used"));
byId("matrix-in").addEventListener("click", () => zoom(matrixChart.div, 0.5));
byId("matrix-out").addEventListener("click", () => zoom(matrixChart.div, 2));
byId("matrix-reset").addEventListener("click", () => {
  const [rx, ry] = matrixRange();
  window.Plotly.relayout(matrixChart.div, { "xaxis.range": rx, "yaxis.range": ry });
});
showMatrix(data.entries.n_features <= 2 * nUsed ? "used" : "all");
