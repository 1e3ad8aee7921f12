// Section 4: features as nodes, pairs as edges.

const graph = data.graph;
const nodeOf = new Map(graph.id.map((id, node) => [id, node]));
// So many names are written; the others appear when a node is pointed at or found.
const labelled = graph.id.length <= 60 ? graph.id.length : 40;
let found = [];

function graphRange() {
  const around = (list) => { const [a, b] = [Math.min(...list), Math.max(...list)]; const room = 0.06 * Math.max(b - a, 2) + 0.5; return [a - room, b + room]; };
  return [around(graph.x), around(graph.y)];
}

const partnersOf = graph.id.map(() => []);
pairs.i.forEach((i, at) => {
  const [a, b] = [nodeOf.get(i), nodeOf.get(pairs.j[at])];
  partnersOf[a].push([b, pairs.weight[at]]);
  partnersOf[b].push([a, pairs.weight[at]]);
});

const graphChart = chart("graph-chart", `A graph of ${count(graph.id.length, "feature")} joined by ${count(pairs.i.length, "pair")}, in ${count(graph.n_groups, "group")}. The same figures are in the tables below.`, () => {
  const traces = [];
  const strongest = Math.max(...pairs.weight.map(Math.abs), 1e-300);
  // Three widths a sign: a trace of its own for every edge would be slow.
  for (const sign of [1, -1]) {
    for (const [low, high, width] of [[0.4, 1.01, 3.2], [0.12, 0.4, 1.9], [0, 0.12, 0.9]]) {
      const [x, y] = [[], []];
      pairs.i.forEach((i, at) => {
        const size = Math.abs(pairs.weight[at]) / strongest;
        if (Math.sign(pairs.weight[at]) !== sign || size < low || size >= high) return;
        const [a, b] = [nodeOf.get(i), nodeOf.get(pairs.j[at])];
        x.push(graph.x[a], graph.x[b], null);
        y.push(graph.y[a], graph.y[b], null);
      });
      if (x.length) traces.push({ x, y, type: "scatter", mode: "lines", hoverinfo: "skip", showlegend: false, line: { width, color: colour(sign > 0 ? "blue" : "red"), dash: sign > 0 ? "solid" : "dot" }, opacity: found.length ? 0.25 : 0.75 });
    }
  }
  const largest = Math.max(...features.weight, 1e-300);
  const sizes = features.weight.map((w) => (graph.id.length > 400 ? 4 : 7) + (graph.id.length > 400 ? 10 : 17) * Math.sqrt(w / largest));
  const isFound = new Set(found);
  traces.push({
    x: graph.x, y: graph.y, type: "scatter", mode: "markers", showlegend: false, name: "features",
    customdata: graph.id.map((_, node) => node),
    text: graph.id.map((id, node) => `${plain(brief(names[id], 60))}<br>weight ${short(features.weight[node])}, ${count(features.n_pairs[node], "pair")}`),
    hovertemplate: "%{text}<extra></extra>",
    marker: { size: sizes.map((s, node) => (isFound.has(node) ? s + 6 : s)), color: graph.group.map(hue), opacity: graph.id.map((_, node) => (!found.length || isFound.has(node) ? 1 : 0.25)), line: { width: graph.id.map((_, node) => (isFound.has(node) ? 3 : 1)), color: graph.id.map((_, node) => (isFound.has(node) ? colour("ink") : colour("paper"))) } },
  });
  const written = found.length ? found.slice(0, 40) : graph.id.slice(0, labelled).map((_, node) => node);
  traces.push({
    x: written.map((node) => graph.x[node]), y: written.map((node) => graph.y[node]), type: "scatter", mode: "text", hoverinfo: "skip", showlegend: false, name: "names",
    text: written.map((node) => plain(brief(names[graph.id[node]], 18))), textposition: "top center", textfont: { size: graph.id.length > 60 ? 11 : 13, color: colour("ink") },
  });
  for (const [name, tone, dash] of [["alike", "blue", "solid"], ["unlike", "red", "dot"]]) traces.push({ x: [null], y: [null], type: "scatter", mode: "lines", name, line: { color: colour(tone), width: 3, dash } });
  const [rx, ry] = graphRange();
  const bare = { showgrid: false, zeroline: false, showticklabels: false };
  return { traces, layout: layout({ dragmode: "pan", margin: { l: 8, r: 8, t: 8, b: 8 }, xaxis: axis({ ...bare, range: rx }), yaxis: axis({ ...bare, range: ry }), legend: { orientation: "h", x: 0, y: 0, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" }, uirevision: "kept" }) };
}, { ready: (div) => div.on("plotly_click", (event) => { const node = event.points[0]?.customdata; if (node !== undefined) describe([node]); }) });

// Says in words what the nodes are joined with.
function describe(nodes) {
  const panel = byId("graph-detail");
  panel.hidden = nodes.length === 0;
  panel.replaceChildren(...nodes.slice(0, 3).flatMap((node) => {
    const partners = partnersOf[node].slice().sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const items = partners.slice(0, 12).map(([other, weight]) => el("li", {}, el("span", { class: `tag ${weight > 0 ? "alike" : "unlike"}` }, weight > 0 ? "alike" : "unlike"), ` ${names[graph.id[other]]}, ${signed(weight)}`));
    if (partners.length > 12) items.push(el("li", {}, `and ${thousands(partners.length - 12)} more, see the table below`));
    return [el("h4", {}, `${names[graph.id[node]]}, in ${count(partners.length, "pair")}`), el("ul", {}, ...items)];
  }));
}

byId("graph-search").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  found = wanted ? graph.id.flatMap((id, node) => (names[id].toLowerCase().includes(wanted) ? [node] : [])) : [];
  say("graph-found", wanted ? `${count(found.length, "feature")} found` : "");
  describe(found.length <= 3 ? found : []);
  graphChart.draw();
});
byId("graph-in").addEventListener("click", () => zoom(graphChart.div, 0.5));
byId("graph-out").addEventListener("click", () => zoom(graphChart.div, 2));
byId("graph-reset").addEventListener("click", () => {
  const [rx, ry] = graphRange();
  window.Plotly.relayout(graphChart.div, { "xaxis.range": rx, "yaxis.range": ry });
});
say("graph-caption", `${labelled < graph.id.length ? `The ${labelled} strongest features are named; point at a dot or search to see others. ` : ""}Drag to move, click a dot to read its pairs. Where dots lie means nothing but that what is joined is near.`);
