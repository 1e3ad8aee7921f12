// Section 6: rows before and after the learned transformation.

const map = data.map;
if (map) {
  // More classes cannot be distinguished; the smaller ones get the same mark.
  const maxClasses = 16;
  const sizes = new Map();
  (map.class ?? []).forEach((c) => sizes.set(c, (sizes.get(c) ?? 0) + 1));
  const bySize = [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a) || a - b);
  const shownClasses = (bySize.length > maxClasses ? bySize.slice(0, maxClasses - 1) : bySize).sort((a, b) => a - b);
  const merged = new Set(bySize.filter((c) => !shownClasses.includes(c)));
  const groups = shownClasses.map((c, at) => ({ name: classes[c], at, has: (row) => map.class[row] === c }));
  if (merged.size) groups.push({ name: `${merged.size} other classes`, at: null, has: (row) => merged.has(map.class[row]) });
  if (!map.class) groups.push({ name: "rows", at: 0, has: () => true });
  groups.forEach((g) => { g.on = true; g.rows = map.row.flatMap((_, at) => (g.has(at) ? [at] : [])); });
  const size = map.row.length > 1000 ? 5 : 7;

  const plane = (id, which, label) => chart(id, `${label} Each of ${count(map.row.length, "row")} is a dot${map.class ? `, in ${count(bySize.length, "class")}` : ""}.`, () => {
    const { x, y, variance } = map[which];
    const traces = groups.filter((g) => g.on).map((g) => ({
      x: g.rows.map((at) => x[at]), y: g.rows.map((at) => y[at]), customdata: g.rows.map((at) => map.row[at]), type: "scatter", mode: "markers", name: escapeMarkup(g.name), showlegend: false,
      marker: { size, opacity: 0.72, color: g.at === null ? color("soft") : hue(g.at), symbol: g.at === null ? "circle-open" : shape(g.at) },
      hovertemplate: `row %{customdata}<br>${escapeMarkup(shorten(g.name, 40)).replace(/%\{/g, "%&#123;")}<extra></extra>`,
    }));
    const title = (n, share) => ({ title: { text: `component ${n} (${percent(share)} of the variance)` }, showticklabels: false, ticks: "", zeroline: false });
    return { traces, layout: layout({ height: Math.max(330, Math.min(560, byId(id).clientWidth)), margin: { l: 40, r: 8, t: 8, b: 40 }, xaxis: axis(title(1, variance[0])), yaxis: axis(title(2, variance[1])) }) };
  }, { ready: (div) => div.on("plotly_click", (event) => { if (map.of_test) chooseRow(event.points[0].customdata, true); }) });
  const planes = [plane("map-raw-chart", "raw", "The preprocessed rows along their first two principal components."), plane("map-learned-chart", "learned", "The transformed rows along their first two principal components.")];

  const paths = { circle: "M8 2a6 6 0 1 0 .01 0z", square: "M2.5 2.5h11v11h-11z", diamond: "M8 1l7 7-7 7-7-7z", "triangle-up": "M8 2l7 12H1z", cross: "M6 1h4v5h5v4h-5v5H6v-5H1V6h5z", "triangle-down": "M8 14L1 2h14z", x: "M3 1l5 5 5-5 2 2-5 5 5 5-2 2-5-5-5 5-2-2 5-5-5-5z", star: "M8 1l2 5 5 .3-4 3.4 1.4 5L8 12l-4.400 2.700L5 9.700 1 6.300 6 6z" };
  const chips = byId("map-classes");
  const drawChips = () => chips.replaceChildren(...groups.map((g) => {
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    icon.setAttribute("viewBox", "0 0 16 16");
    icon.setAttribute("aria-hidden", "true");
    const outline = document.createElementNS("http://www.w3.org/2000/svg", "path");
    outline.setAttribute("d", paths[g.at === null ? "circle" : shape(g.at)]);
    outline.setAttribute("fill", g.at === null ? "none" : hue(g.at));
    outline.setAttribute("stroke", g.at === null ? color("soft") : hue(g.at));
    icon.append(outline);
    const button = el("button", { type: "button", class: "chip quiet", "aria-pressed": String(g.on), onclick: () => {
      g.on = !g.on;
      button.setAttribute("aria-pressed", String(g.on));
      planes.forEach((p) => p.draw());
    } }, icon, `${shorten(g.name, 40)} (${thousands(g.rows.length)})`);
    return button;
  }));
  if (map.class) drawChips(); else chips.remove();
  if (map.class) onThemeChange.push(drawChips);
  setText("map-caption", `The axes are the first two principal components of ${map.n_fitted < map.n_train ? `a sample of ${thousands(map.n_fitted)} of the ${thousands(map.n_train)}` : `the ${thousands(map.n_train)}`} training rows: the directions of largest variance. The dots are ${map.row.length < map.n_rows ? `${thousands(map.row.length)} of ${thousands(map.n_rows)}` : `the ${thousands(map.n_rows)}`} ${map.of_test ? "test" : "training"} rows${map.row.length < map.n_rows ? ", evenly spaced" : ""}.${map.of_test ? " Click a dot to see its neighbors in section 7." : ""} Two components show only a part of the variance: classes that overlap here may be separated along others.`);
}
