// Section 3: how much of the scores comes from the base, and how much is learned.

const baseParts = data.base_parts;
if (baseParts) {
  const { groups } = baseParts;
  const [nearest, alike, unlike] = groups;
  const contrast = !baseParts.has_contrast ? "" : ` From pairs that do not belong together to pairs that do, the mean base score changes by ${signed(alike.base - unlike.base)} and the mean learned score by ${signed(alike.learned - unlike.learned)}.`;
  setText("parts-words", `Of the scores of nearest neighbors, ${percent(1 - nearest.share)} come from the base and ${percent(nearest.share)} from the learned atoms.${contrast}`);
  const number = (label, value) => ({ label, numeric: true, value, cell: (g) => el("data", { value: value(g) }, short(value(g))) });
  table("parts-table", {
    caption: "Base and learned part of the scores", rows: groups,
    columns: [
      { label: "pairs of rows", head: true, text: (g) => g.name },
      { label: "number", numeric: true, value: (g) => g.n_pairs, text: (g) => thousands(g.n_pairs) },
      number("base", (g) => g.base), number("learned", (g) => g.learned), number("score", (g) => g.base + g.learned),
      { label: "learned share", numeric: true, value: (g) => g.share, text: (g) => percent(g.share), cell: (g) => el("span", { class: "split" }, el("span", { class: "meter", "aria-hidden": "true" }, (() => { const bar = el("i"); bar.style.width = percent(g.share); return bar; })()), percent(g.share)) },
    ],
  });
}
