// Section 4: the graph, with features as nodes and pairs as edges.

const graph = data.graph;
const nodeOf = new Map(graph.id.map((id, node) => [id, node]));
let found = [];

function graphRange() {
  const around = (list) => { const [a, b] = [Math.min(...list), Math.max(...list)]; const room = 0.06 * Math.max(b - a, 2) + 0.5; return [a - room, b + room]; };
  return [around(graph.x), around(graph.y)];
}

// More names would cover the nodes.
const maxLabels = 60;

// The names that fit without overlap, by decreasing weight. After zooming in, more of them fit.
function labels() {
  const div = byId("graph-chart");
  const size = div._fullLayout?._size ?? { w: div.clientWidth, h: div.clientHeight };
  const [rx, ry] = div.layout ? [div.layout.xaxis.range, div.layout.yaxis.range] : graphRange();
  const occupied = new Map();
  const cell = (x, y) => `${Math.floor(x / 80)},${Math.floor(y / 20)}`;
  const order = found.length ? found.slice(0, 400) : graph.id.map((_, node) => node);
  const text = graph.id.map(() => "");
  let written = 0;
  for (const node of order) {
    const x = ((graph.x[node] - rx[0]) / (rx[1] - rx[0])) * size.w;
    const y = ((graph.y[node] - ry[0]) / (ry[1] - ry[0])) * size.h;
    if (x < 0 || y < 0 || x > size.w || y > size.h) continue;
    const name = shorten(names[graph.id[node]], 18);
    const half = 3.7 * name.length + 3;
    const near = [];
    for (const dx of [-160, -80, 0, 80, 160]) for (const dy of [-20, 0, 20]) near.push(...(occupied.get(cell(x + dx, y + dy)) ?? []));
    if (near.some(([u, v, w]) => Math.abs(u - x) < w + half && Math.abs(v - y) < 15)) continue;
    const here = cell(x, y);
    if (!occupied.has(here)) occupied.set(here, []);
    occupied.get(here).push([x, y, half]);
    text[node] = escapeMarkup(name);
    written += 1;
    if (written === maxLabels) break;
  }
  return text;
}

const partnersOf = graph.id.map(() => []);
pairs.i.forEach((i, at) => {
  const [a, b] = [nodeOf.get(i), nodeOf.get(pairs.j[at])];
  partnersOf[a].push([b, pairs.weight[at]]);
  partnersOf[b].push([a, pairs.weight[at]]);
});

const graphChart = chart("graph-chart", `A graph of ${count(graph.id.length, "feature")}, connected by ${count(pairs.i.length, "pair")}, in ${count(graph.n_groups, "group")}. The tables below contain the same numbers.`, () => {
  const traces = [];
  const largestPair = Math.max(...pairs.weight.map(Math.abs), 1e-300);
  // Three widths per sign: one trace per edge would be slow.
  for (const sign of [1, -1]) {
    for (const [low, high, width] of [[0.4, 1.01, 3.2], [0.12, 0.4, 1.9], [0, 0.12, 0.9]]) {
      const [x, y] = [[], []];
      pairs.i.forEach((i, at) => {
        const size = Math.abs(pairs.weight[at]) / largestPair;
        if (Math.sign(pairs.weight[at]) !== sign || size < low || size >= high) return;
        const [a, b] = [nodeOf.get(i), nodeOf.get(pairs.j[at])];
        x.push(graph.x[a], graph.x[b], null);
        y.push(graph.y[a], graph.y[b], null);
      });
      if (x.length) traces.push({ x, y, type: "scatter", mode: "lines", hoverinfo: "skip", showlegend: false, line: { width, color: color(sign > 0 ? "blue" : "red"), dash: sign > 0 ? "solid" : "dot" }, opacity: found.length ? 0.25 : 0.75 });
    }
  }
  const largest = Math.max(...features.weight, 1e-300);
  const sizes = features.weight.map((w) => (graph.id.length > 400 ? 4 : 7) + (graph.id.length > 400 ? 10 : 17) * Math.sqrt(w / largest));
  const isFound = new Set(found);
  traces.push({
    x: graph.x, y: graph.y, type: "scatter", mode: "markers+text", cliponaxis: false, showlegend: false, name: "features",
    customdata: graph.id.map((_, node) => node),
    hovertext: graph.id.map((id, node) => `${escapeMarkup(shorten(names[id], 60))}<br>weight ${short(features.weight[node])}, ${count(features.n_pairs[node], "pair")}`),
    hovertemplate: "%{hovertext}<extra></extra>",
    text: labels(), textposition: "top center", textfont: { size: 12, color: color("ink") },
    marker: { size: sizes.map((s, node) => (isFound.has(node) ? s + 6 : s)), color: graph.group.map(hue), opacity: graph.id.map((_, node) => (!found.length || isFound.has(node) ? 1 : 0.25)), line: { width: graph.id.map((_, node) => (isFound.has(node) ? 3 : 1)), color: graph.id.map((_, node) => (isFound.has(node) ? color("ink") : color("paper"))) } },
  });
  for (const [name, tone, dash] of [["more similar", "blue", "solid"], ["less similar", "red", "dot"]]) traces.push({ x: [null], y: [null], type: "scatter", mode: "lines", name, line: { color: color(tone), width: 3, dash } });
  const [rx, ry] = graphRange();
  const bare = { showgrid: false, zeroline: false, showticklabels: false, showline: false, ticks: "", visible: false };
  return { traces, layout: layout({ dragmode: "pan", margin: { l: 8, r: 8, t: 8, b: 8 }, xaxis: axis({ ...bare, range: rx }), yaxis: axis({ ...bare, range: ry }), legend: { orientation: "h", x: 0, y: 0, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" }, uirevision: "constant" }) };
}, {
  ready: (div) => {
    div.on("plotly_click", (event) => { const node = event.points[0]?.customdata; if (node !== undefined) describe([node]); });
    div.on("plotly_relayout", () => { window.Plotly.restyle(div, { text: [labels()] }, [div.data.findIndex((t) => t.name === "features")]); });
  },
});

// Lists the pairs of the given nodes.
function describe(nodes) {
  const panel = byId("graph-detail");
  panel.hidden = nodes.length === 0;
  panel.replaceChildren(...nodes.slice(0, 3).flatMap((node) => {
    const partners = partnersOf[node].slice().sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const items = partners.slice(0, 12).map(([other, weight]) => el("li", {}, effectTag(weight), ` ${names[graph.id[other]]}, ${signed(weight)}`));
    if (partners.length > 12) items.push(el("li", {}, `and ${thousands(partners.length - 12)} more, in the table below`));
    return [el("h4", {}, `${names[graph.id[node]]}: ${count(partners.length, "pair")}`), el("ul", {}, ...items)];
  }));
}

byId("graph-search").addEventListener("input", (event) => {
  const query = event.target.value.trim().toLowerCase();
  found = query ? graph.id.flatMap((id, node) => (names[id].toLowerCase().includes(query) ? [node] : [])) : [];
  setText("graph-found", query ? `${count(found.length, "feature")} found` : "");
  describe(found.length <= 3 ? found : []);
  graphChart.draw();
});
byId("graph-in").addEventListener("click", () => zoom(graphChart.div, 0.5));
byId("graph-out").addEventListener("click", () => zoom(graphChart.div, 2));
byId("graph-reset").addEventListener("click", () => {
  const [rx, ry] = graphRange();
  window.Plotly.relayout(graphChart.div, { "xaxis.range": rx, "yaxis.range": ry });
});
setText("graph-caption", `Names are shown where there is room; zoom in, point at a dot or search to see others. Drag to move, click a dot to list its pairs. Only closeness is meaningful: connected features are placed near each other.`);
