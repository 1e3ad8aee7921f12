// Section 2: objective, duality gap, validation error and number of features by iteration.

const run = data.run;
// What the validation errors are, such as "validation error" or "held-out triplet error".
const validation = run.validation;
const stepKinds = { f: ["forward", "circle", "blue"], a: ["away", "triangle-down", "red"], d: ["drop", "x", "red"], p: ["pairwise", "diamond", "accent"], w: ["swap", "square", "accent"] };

{
  const kinds = run.n_steps.map(([name, n]) => `${thousands(n)} ${name}`).join(", ");
  const used = run.evaluations.find((e) => e[0] === run.chosen);
  const lowest = run.evaluations.length ? Math.min(...run.evaluations.map((e) => e[1])) : null;
  const error = !used ? "" : `, with a ${validation} of ${percent(used[1])}${used[1] === lowest ? ", the lowest of the run" : ""}`;
  const bound = run.gap_certified === null ? "" : ` The certified duality gap at the end is ${short(Math.max(0, run.gap_certified))}: the objective is at most that far above its minimum.`;
  setText("run-words", `The run has ${count(run.length, "step")}${kinds ? ` (${kinds})` : ""}. The model in use is iterate ${thousands(run.chosen)}${error}.${bound}`);
}

// Steps are marked on demand: there may be hundreds, which would cover the line.
let marksSteps = false;
const panels = [];
if (run.objective.length) panels.push("objective", "gap");
if (run.evaluations.length) panels.push("valid");
panels.push("size");

const runChart = chart("run-chart", `Line charts by iteration: ${panels.map((p) => ({ objective: "objective", gap: "duality gap", valid: validation, size: "number of features in use" })[p]).join("; ")}. The iterate in use, ${run.chosen}, is marked.`, () => {
  const traces = [];
  const axes = {};
  const share = 1 / panels.length;
  panels.forEach((panel, number) => {
    const id = number === 0 ? "" : String(number + 1);
    const top = 1 - number * share;
    const domain = [top - share + 0.05, top - 0.008];
    const line = (y, name, tone, more = {}) => traces.push({ x: run.iteration, y, name, yaxis: `y${id}`, type: "scatter", mode: "lines", line: { color: color(tone), width: 2 }, hovertemplate: `iteration %{x}<br>${name} %{y}<extra></extra>`, showlegend: false, ...more });
    const title = (text, more = {}) => { axes[`yaxis${id}`] = axis({ domain, title: { text }, ...more }); };
    if (panel === "objective") {
      title("objective");
      line(run.objective, "objective", "accent", { customdata: [...run.step].map((s) => (stepKinds[s] ? `${stepKinds[s][0]} step` : "start")), hovertemplate: "iteration %{x}: %{customdata}<br>objective %{y}<extra></extra>" });
      for (const [letter, [name, symbol, tone]] of Object.entries(stepKinds)) {
        const which = [...run.step].flatMap((s, at) => (s === letter ? [at] : []));
        if (!marksSteps || !which.length) continue;
        traces.push({ x: which.map((at) => run.iteration[at]), y: which.map((at) => run.objective[at]), yaxis: `y${id}`, type: "scatter", mode: "markers", name: `${name} step`, marker: { symbol, color: color(tone), size: letter === "f" ? 4 : 7 }, hovertemplate: `iteration %{x}: ${name} step<br>objective %{y}<extra></extra>` });
      }
    }
    if (panel === "gap") {
      const name = run.all_certified ? "duality gap" : "estimated gap";
      title(name, { type: "log", dtick: 1, exponentformat: "power" });
      line(run.gap.map((g) => (g > 0 ? g : null)), name, "accent");
      if (run.gap_certified > 0) traces.push({ x: [run.length], y: [run.gap_certified], yaxis: `y${id}`, type: "scatter", mode: "markers", name: "certified gap at the end", marker: { symbol: "star", size: 12, color: color("accent") }, hovertemplate: "certified gap %{y}<extra></extra>" });
    }
    if (panel === "valid") {
      title(validation, { tickformat: ".1~%", rangemode: "tozero" });
      line(run.evaluations.map((e) => e[1]), validation, "accent", { x: run.evaluations.map((e) => e[0]), mode: "lines+markers", marker: { size: 6 }, hovertemplate: `iteration %{x}<br>${validation} %{y:.1%}<extra></extra>` });
    }
    if (panel === "size") {
      title("features in use", { rangemode: "tozero" });
      line(run.n_features, "features in use", "accent", { line: { color: color("accent"), width: 2, shape: "hv" } });
    }
  });
  const marker = { type: "line", xref: "x", yref: "paper", x0: run.chosen, x1: run.chosen, y0: 0.05, y1: 1, line: { color: color("ink"), width: 1.5, dash: "dot" } };
  const last = panels.length === 1 ? "y" : `y${panels.length}`;
  return {
    traces,
    layout: layout({ ...axes, xaxis: axis({ title: { text: "iteration" }, anchor: last, range: [-0.02 * Math.max(1, run.length), 1.02 * Math.max(1, run.length)] }), shapes: [marker],
      annotations: [{ xref: "x", yref: "paper", x: run.chosen, y: 1, text: `in use: ${thousands(run.chosen)}`, showarrow: false, xanchor: run.chosen > run.length / 2 ? "right" : "left", yanchor: "bottom" }],
      margin: { l: 56, r: 14, t: marksSteps ? 64 : 30, b: 44 }, legend: { orientation: "h", x: 0, y: 1.035, yanchor: "bottom", font: { size: 13 } } }),
  };
});

{
  const button = byId("run-steps");
  byId("run-controls").hidden = !run.objective.length;
  button.addEventListener("click", () => {
    marksSteps = !marksSteps;
    button.setAttribute("aria-pressed", String(marksSteps));
    runChart.draw();
  });
}

setText("run-caption", (run.objective.length ? "" : "The model file does not contain objective and gap. ")
  + (run.iteration.length < run.length + 1 ? `${thousands(run.iteration.length)} of ${thousands(run.length + 1)} iterates are shown. ` : "")
  + (run.objective.length ? (run.all_certified ? "The duality gap is an upper bound on the distance of the objective from its minimum." : "The estimated duality gap is not an upper bound on the distance of the objective from its minimum, because the search for the next atom is heuristic or uses a mini-batch.") : ""));

{
  const errors = new Map(run.evaluations);
  asTable("run-table", "Training run as a table", {
    caption: "Training run, one iterate per row", page: 25,
    columns: [
      { label: "iteration", numeric: true, head: true, value: (r) => run.iteration[r], text: (r) => thousands(run.iteration[r]) },
      { label: "step", text: (r) => (stepKinds[run.step[r]] ?? ["start"])[0] },
      ...(run.objective.length ? [
        { label: "objective", numeric: true, value: (r) => run.objective[r], text: (r) => short(run.objective[r]) },
        { label: "gap", numeric: true, value: (r) => run.gap[r], text: (r) => short(run.gap[r]) }] : []),
      { label: validation, numeric: true, value: (r) => errors.get(run.iteration[r]) ?? null, text: (r) => (errors.has(run.iteration[r]) ? percent(errors.get(run.iteration[r])) : "") },
      { label: "features", numeric: true, value: (r) => run.n_features[r], text: (r) => thousands(run.n_features[r]) },
      { label: "dimensions", numeric: true, value: (r) => run.n_atoms[r], text: (r) => thousands(run.n_atoms[r]) },
    ],
    rows: run.iteration.map((_, at) => at),
  });
}
