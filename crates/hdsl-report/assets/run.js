// Section 2: objective, gap, validation error and size against iterations.

const run = data.run;
const stepKinds = { f: ["forward", "circle", "blue"], a: ["away", "triangle-down", "red"], d: ["drop", "x", "red"], p: ["pairwise", "diamond", "accent"], w: ["swap", "square", "accent"] };

{
  const kinds = run.n_steps.map(([name, n]) => `${thousands(n)} ${name}`).join(", ");
  const best = run.evaluations.length ? Math.min(...run.evaluations.map((e) => e[1])) : null;
  const bound = run.gap_certified === null ? "" : ` At the end the objective is proved to be at most ${short(Math.max(0, run.gap_certified))} above the best possible.`;
  say("run-words", `${count(run.length, "step")}${kinds ? `: ${kinds}` : ""}. The model after ${thousands(run.chosen)} of them is in use`
    + `${best === null ? "." : `, the one with the lowest validation error, ${percent(best)}.`}${bound}`);
}

const panels = [];
if (run.objective.length) panels.push("objective", "gap");
if (run.evaluations.length) panels.push("valid");
panels.push("size");

chart("run-chart", `Lines against iterations: ${panels.map((p) => ({ objective: "the objective, with the kind of each step", gap: "the gap", valid: "the validation error", size: "the number of active features" })[p]).join("; ")}. The iterate in use, ${run.chosen}, is marked.`, () => {
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
      title("objective", { rangemode: "tozero" });
      line(run.objective, "objective", "soft", { line: { color: color("soft"), width: 1.5 } });
      for (const [letter, [name, symbol, tone]] of Object.entries(stepKinds)) {
        const which = [...run.step].flatMap((s, at) => (s === letter ? [at] : []));
        if (!which.length) continue;
        traces.push({ x: which.map((at) => run.iteration[at]), y: which.map((at) => run.objective[at]), yaxis: `y${id}`, type: "scatter", mode: "markers", name: `${name} step`, marker: { symbol, color: color(tone), size: letter === "f" ? 5 : 8 }, hovertemplate: `iteration %{x}: ${name} step<br>objective %{y}<extra></extra>` });
      }
    }
    if (panel === "gap") {
      const word = run.all_certified ? "certified gap" : "estimated gap";
      title(word, { type: "log", dtick: 1, exponentformat: "power" });
      line(run.gap.map((g) => (g > 0 ? g : null)), word, "accent");
      if (run.gap_certified > 0) traces.push({ x: [run.length], y: [run.gap_certified], yaxis: `y${id}`, type: "scatter", mode: "markers", name: "certified at the end", marker: { symbol: "star", size: 12, color: color("accent") }, hovertemplate: "certified gap %{y}<extra></extra>" });
    }
    if (panel === "valid") {
      title("validation error", { tickformat: ".1~%", rangemode: "tozero" });
      line(run.evaluations.map((e) => e[1]), "validation error", "accent", { x: run.evaluations.map((e) => e[0]), mode: "lines+markers", marker: { size: 6 }, hovertemplate: "iteration %{x}<br>validation error %{y:.1%}<extra></extra>" });
    }
    if (panel === "size") {
      title("active features", { rangemode: "tozero" });
      line(run.n_features, "active features", "accent", { line: { color: color("accent"), width: 2, shape: "hv" } });
    }
  });
  const marker = { type: "line", xref: "x", yref: "paper", x0: run.chosen, x1: run.chosen, y0: 0.05, y1: 1, line: { color: color("ink"), width: 1.5, dash: "dot" } };
  const last = panels.length === 1 ? "y" : `y${panels.length}`;
  return {
    traces,
    layout: layout({ ...axes, xaxis: axis({ title: { text: "iteration" }, anchor: last, range: [-0.02 * Math.max(1, run.length), 1.02 * Math.max(1, run.length)] }), shapes: [marker],
      annotations: [{ xref: "x", yref: "paper", x: run.chosen, y: 1, text: `in use: ${thousands(run.chosen)}`, showarrow: false, xanchor: run.chosen > run.length / 2 ? "right" : "left", yanchor: "top", bgcolor: color("paper"), borderpad: 3 }] }),
  };
});

say("run-caption", (run.objective.length ? "" : "Objective and gap were not kept in this model. ")
  + (run.iteration.length < run.length + 1 ? `${thousands(run.iteration.length)} of ${thousands(run.length + 1)} iterates are drawn. ` : "")
  + (run.objective.length ? (run.all_certified ? "The gap bounds how far the objective is from the best possible." : "The gap is what the search saw: a hint of how far there is to go, and no bound unless it is certified.") : ""));

{
  const errors = new Map(run.evaluations);
  asTable("run-table", "The run as a table", {
    caption: "The run, an iterate a row", page: 25,
    columns: [
      { label: "iteration", numeric: true, head: true, value: (r) => run.iteration[r], text: (r) => thousands(run.iteration[r]) },
      { label: "step", text: (r) => (stepKinds[run.step[r]] ?? ["start"])[0] },
      ...(run.objective.length ? [
        { label: "objective", numeric: true, value: (r) => run.objective[r], text: (r) => short(run.objective[r]) },
        { label: "gap", numeric: true, value: (r) => run.gap[r], text: (r) => short(run.gap[r]) }] : []),
      { label: "validation error", numeric: true, value: (r) => errors.get(run.iteration[r]) ?? null, text: (r) => (errors.has(run.iteration[r]) ? percent(errors.get(run.iteration[r])) : "") },
      { label: "features", numeric: true, value: (r) => run.n_features[r], text: (r) => thousands(run.n_features[r]) },
      { label: "dimensions", numeric: true, value: (r) => run.n_atoms[r], text: (r) => thousands(run.n_atoms[r]) },
    ],
    rows: run.iteration.map((_, at) => at),
  });
}
