// Charts are drawn when they scroll into view, redrawn when the theme changes, and all drawn before printing. plotly.js is
// at the end of the page, so that texts and tables are shown before it is parsed.

const drawn = new Map();
const library = new Promise((ready) => {
  if (window.Plotly) ready();
  else document.addEventListener("DOMContentLoaded", () => ready());
});
const config = { responsive: true, displayModeBar: false, displaylogo: false, doubleClick: "reset" };

function axis(more = {}) {
  return {
    gridcolor: color("line"), zerolinecolor: color("line"), linecolor: color("soft"), tickcolor: color("soft"),
    automargin: true, ...more, title: { font: { size: 13 }, standoff: 8, ...(more.title ?? {}) },
  };
}

function layout(more = {}) {
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 56, r: 14, t: 14, b: 44 }, hovermode: "closest",
    font: { family: color("sans"), size: 13, color: color("ink") },
    hoverlabel: { bgcolor: color("raised"), bordercolor: color("soft"), font: { color: color("ink"), family: color("sans") }, align: "left", namelength: -1 },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 13 } }, ...more,
  };
}

// Registers a chart: `label` describes it for screen readers, `make` returns traces and layout.
function chart(id, label, make, more = {}) {
  const div = byId(id);
  if (!div) return null;
  div.setAttribute("role", "img");
  div.setAttribute("aria-label", label);
  const draw = () => {
    const figure = make();
    // Axes with a fixed aspect ratio keep their last range; a chart that changes its range altogether is recreated.
    if (more.recreate && drawn.has(id)) window.Plotly.purge(div);
    const done = window.Plotly.react(div, figure.traces, figure.layout, { ...config, ...more.config });
    if (!drawn.has(id)) {
      drawn.set(id, draw);
      done.then(() => { div.dataset.drawn = "yes"; more.ready?.(div); });
    }
    return done;
  };
  const near = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      near.disconnect();
      library.then(() => { if (!drawn.has(id)) draw(); });
    }
  }, { rootMargin: "300px" });
  near.observe(div);
  waiting.set(id, draw);
  return { div, draw: () => (drawn.has(id) ? draw() : Promise.resolve()) };
}

const waiting = new Map();
onThemeChange.push(() => drawn.forEach((draw) => draw()));
window.addEventListener("beforeprint", () => {
  setTheme("light");
  waiting.forEach((draw, id) => { if (!drawn.has(id)) draw(); });
});
window.addEventListener("afterprint", () => setTheme(currentTheme()));

// Scales the ranges of both axes around their centers.
function zoom(div, factor) {
  const change = {};
  for (const name of ["xaxis", "yaxis"]) {
    const [a, b] = div.layout[name].range;
    const center = (a + b) / 2;
    const half = ((b - a) / 2) * factor;
    change[`${name}.range`] = [center - half, center + half];
  }
  return window.Plotly.relayout(div, change);
}
