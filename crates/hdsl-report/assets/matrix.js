// Section 3: the entries of M that are not 0.

const { features, pairs } = data.entries;
const nUsed = features.id.length;

// In the picture of the used features, groups of the graph stand together, so that blocks show.
const orderInMatrix = features.id.map((_, at) => at).sort((a, b) => data.graph.group[a] - data.graph.group[b] || a - b);
const placeInMatrix = [];
orderInMatrix.forEach((at, place) => { placeInMatrix[features.id[at]] = place; });

let matrixView = "used";
function matrixEntries() {
  const where = matrixView === "all" ? (id) => data.names.feature[id] : (id) => placeInMatrix[id];
  const plus = { x: [], y: [], text: [], size: [] };
  const minus = { x: [], y: [], text: [], size: [] };
  const add = (i, j, weight, words) => {
    const side = weight > 0 ? plus : minus;
    side.x.push(where(j)); side.y.push(where(i)); side.size.push(Math.abs(weight)); side.text.push(words);
  };
  features.id.forEach((id, at) => add(id, id, features.weight[at], `${plain(brief(names[id], 60))}<br>M = ${signed(features.weight[at])}`));
  pairs.i.forEach((i, at) => {
    const [j, weight] = [pairs.j[at], pairs.weight[at]];
    const words = `${plain(brief(names[i], 60))} and ${plain(brief(names[j], 60))}<br>M = ${signed(weight)}, ${meaning(weight)}`;
    add(i, j, weight, words);
    add(j, i, weight, words);
  });
  return [["alike (M > 0)", "blue", "square", plus], ["unlike (M < 0)", "red", "square", minus]];
}

const matrixSpan = () => (matrixView === "all" ? data.entries.n_features : nUsed);
const matrixRange = () => [[-0.5, matrixSpan() - 0.5], [matrixSpan() - 0.5, -0.5]];

const matrixChart = chart("matrix-chart", `The matrix M: ${count(nUsed, "entry").replace("entrys", "entries")} on the diagonal and ${count(pairs.i.length, "pair")} of entries beside it, positive ones blue and negative ones red. The same figures are in the tables of section 4.`, () => {
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
  const ticks = named ? { tickmode: "array", tickvals: orderInMatrix.map((_, place) => place), ticktext: orderInMatrix.map((at) => plain(brief(names[features.id[at]], small ? 9 : 16))), tickfont: { size: nUsed > 24 || small ? 10 : 12 } } : { showticklabels: matrixView === "all", nticks: 6, tickformat: ",d" };
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
}, { anew: true });

function showMatrix(view) {
  matrixView = view;
  byId("matrix-all").setAttribute("aria-pressed", String(view === "all"));
  byId("matrix-used").setAttribute("aria-pressed", String(view === "used"));
  say("matrix-caption", view === "all"
    ? `All ${thousands(data.entries.n_features)} features by number, down and across. Drag a box to zoom in, double-click to see all again.`
    : `The ${thousands(nUsed)} used features${nUsed > 40 ? ", named when you point at an entry" : ""}. Groups that belong together stand together. Drag a box to zoom in, double-click to see all again.`);
  matrixChart.draw();
}
byId("matrix-all").textContent = `All ${thousands(data.entries.n_features)} features`;
byId("matrix-used").textContent = `The ${thousands(nUsed)} used ones`;
byId("matrix-all").addEventListener("click", () => showMatrix("all"));
byId("matrix-used").addEventListener("click", () => showMatrix("used"));
byId("matrix-in").addEventListener("click", () => zoom(matrixChart.div, 0.5));
byId("matrix-out").addEventListener("click", () => zoom(matrixChart.div, 2));
byId("matrix-reset").addEventListener("click", () => {
  const [rx, ry] = matrixRange();
  window.Plotly.relayout(matrixChart.div, { "xaxis.range": rx, "yaxis.range": ry });
});
showMatrix(data.entries.n_features <= 2 * nUsed ? "used" : "all");
