// Section 4: the tables.

const counted = data.entries.counted;
const countedClasses = data.entries.classes;

// Small columns, a class each, with the figures in words for those who cannot see them.
function strip(shares) {
  const most = Math.max(...shares, 1e-9);
  const words = shares.map((s, at) => `${classes[countedClasses[at]]} ${percent(s)}`).join(", ");
  const bars = shares.map((s) => { const bar = el("i"); bar.style.height = `${Math.max(s > 0 ? 6 : 0, 100 * (s / most))}%`; return bar; });
  return el("span", { class: "strip", role: "img", "aria-label": words, title: words }, ...bars);
}

// The strip, and behind a button the same with names and numbers.
function byClass(shares) {
  const list = el("ul", { class: "by-class", hidden: true }, ...shares.map((s, at) => {
    const bar = el("i");
    bar.style.width = `${100 * s}%`;
    return el("li", {}, el("span", {}, classes[countedClasses[at]]), el("span", { class: "meter", "aria-hidden": "true" }, bar), el("span", {}, percent(s)));
  }));
  const button = el("button", { type: "button", class: "link", "aria-expanded": "false", onclick: () => {
    list.hidden = !list.hidden;
    list.style.display = list.hidden ? "none" : "";
    button.setAttribute("aria-expanded", String(!list.hidden));
  } }, "each");
  list.style.display = "none";
  return el("div", {}, strip(shares), " ", button, list);
}

const pairRows = pairs.i.map((i, at) => ({
  i: names[i], j: names[pairs.j[at]], weight: pairs.weight[at],
  same: pairs.same[at], different: pairs.different[at], by: pairs.by_class[at],
}));
say("pairs-words", (counted && classes.length > 1
  ? `Beside each pair stands how often it fires: of two training rows of the same class, and of two rows of different classes, how often one has the first feature and the other the second. The small columns show it for ${countedClasses.length < classes.length ? `the ${countedClasses.length} largest classes` : "each class"}, in the order ${countedClasses.map((c) => classes[c]).join(", ")}.`
  : counted ? "Beside each pair stands how often it fires: how often one of two training rows has the first feature and the other the second." : "How often a pair fires in each class is left out: there are no training rows to count in."));

const pairsTable = table("pairs-table", {
  caption: "Pairs of features, the largest weight first",
  columns: [
    { label: "first", head: true, text: (r) => r.i },
    { label: "second", head: true, text: (r) => r.j },
    { label: "what it says", text: (r) => meaning(r.weight), cell: (r) => el("span", { class: `tag ${r.weight > 0 ? "alike" : "unlike"}` }, meaning(r.weight)) },
    { label: "weight", numeric: true, value: (r) => Math.abs(r.weight), text: (r) => signed(r.weight), cell: (r) => el("data", { value: r.weight }, signed(r.weight)) },
    ...(counted && classes.length > 1 ? [
      { label: "same class", numeric: true, value: (r) => r.same, text: (r) => percent(r.same) },
      { label: "different", numeric: true, value: (r) => r.different, text: (r) => percent(r.different) },
      { label: "in each class", value: (r) => Math.max(...r.by), numeric: true, cell: (r) => byClass(r.by) },
    ] : counted ? [{ label: "fires", numeric: true, value: (r) => r.same, text: (r) => percent(r.same) }] : []),
  ],
  rows: pairRows, search: (r) => `${r.i} ${r.j} ${meaning(r.weight)}`, sort: [3, true], page: 12,
});

table("features-table", {
  caption: "Features, the largest weight first",
  columns: [
    { label: "feature", head: true, text: (r) => r.name },
    { label: "number, from 0", numeric: true, value: (r) => r.feature, text: (r) => thousands(r.feature) },
    { label: "weight", numeric: true, value: (r) => r.weight, cell: (r) => el("data", { value: r.weight }, short(r.weight)) },
    { label: "pairs", numeric: true, value: (r) => r.nPairs, text: (r) => thousands(r.nPairs) },
    ...(counted ? [{ label: "rows with it", numeric: true, value: (r) => r.share, text: (r) => percent(r.share) }] : []),
    ...(counted && classes.length > 1 ? [{ label: "in each class", numeric: true, value: (r) => Math.max(...r.by), cell: (r) => byClass(r.by) }] : []),
  ],
  rows: features.id.map((id, at) => ({ name: names[id], feature: data.names.feature[id], weight: features.weight[at], nPairs: features.n_pairs[at], share: features.share[at], by: features.by_class[at] })),
  search: (r) => `${r.name} ${r.feature}`, sort: [2, true], page: 12,
});
