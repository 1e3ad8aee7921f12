// Charts are drawn when they come into view, redrawn when the colors change, and all of them before printing. The
// library comes last in the page, so that words and tables are there before it has been read.

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

// Registers a chart: `label` says to those who cannot see it what it shows, `make` gives traces and layout.
function chart(id, label, make, more = {}) {
  const div = byId(id);
  if (!div) return null;
  div.setAttribute("role", "img");
  div.setAttribute("aria-label", label);
  const draw = () => {
    const figure = make();
    // Axes held at one scale remember their last window; a chart that changes its window altogether starts anew.
    if (more.anew && drawn.has(id)) window.Plotly.purge(div);
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
whenThemed.push(() => drawn.forEach((draw) => draw()));
window.addEventListener("beforeprint", () => {
  setTheme("light");
  waiting.forEach((draw, id) => { if (!drawn.has(id)) draw(); });
});
window.addEventListener("afterprint", () => setTheme(wanted()));

// Makes a window on two axes smaller or larger around its middle.
function zoom(div, factor) {
  const change = {};
  for (const name of ["xaxis", "yaxis"]) {
    const [a, b] = div.layout[name].range;
    const middle = (a + b) / 2;
    const half = ((b - a) / 2) * factor;
    change[`${name}.range`] = [middle - half, middle + half];
  }
  return window.Plotly.relayout(div, change);
}
