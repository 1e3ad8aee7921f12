// Section 4: tables of pairs and features.

const counted = data.entries.counted;
const countedClasses = data.entries.classes;

// A bar chart with one bar per class, with the percentages as text for screen readers.
function classBars(shares) {
  const largest = Math.max(...shares, 1e-9);
  const text = shares.map((s, at) => `${classes[countedClasses[at]]} ${percent(s)}`).join(", ");
  const bars = shares.map((s) => { const bar = el("i"); bar.style.height = `${Math.max(s > 0 ? 6 : 0, 100 * (s / largest))}%`; return bar; });
  return el("span", { class: "class-bars", role: "img", "aria-label": text, title: text }, ...bars);
}

// The bar chart, and a button that shows class names and percentages.
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
  } }, "details");
  list.style.display = "none";
  return el("div", {}, classBars(shares), " ", button, list);
}

const effectTag = (weight) => el("span", { class: `tag ${weight > 0 ? "positive" : "negative"}` }, effect(weight));

const pairRows = pairs.i.map((i, at) => ({
  i: names[i], j: names[pairs.j[at]], weight: pairs.weight[at],
  same: pairs.same[at], different: pairs.different[at], by: pairs.by_class[at],
}));
setText("pairs-words", (counted && classes.length > 1
  ? `The percentages are pair frequencies: how often a pair contributes to the similarity of two training rows of the same class, and of different classes. The small bars show the frequency for two rows of ${countedClasses.length < classes.length ? `each of the ${countedClasses.length} largest classes` : "each class"}, in the order ${countedClasses.map((c) => classes[c]).join(", ")}.`
  : counted ? "The frequency of a pair is how often it contributes to the similarity of two training rows." : "Pair frequencies are left out, because they need training rows."));

const pairsTable = table("pairs-table", {
  caption: "Pairs of features, by weight",
  columns: [
    { label: "first", head: true, text: (r) => r.i },
    { label: "second", head: true, text: (r) => r.j },
    { label: "effect", text: (r) => effect(r.weight), cell: (r) => effectTag(r.weight) },
    { label: "weight", numeric: true, value: (r) => Math.abs(r.weight), text: (r) => signed(r.weight), cell: (r) => el("data", { value: r.weight }, signed(r.weight)) },
    ...(counted && classes.length > 1 ? [
      { label: "same class", numeric: true, value: (r) => r.same, text: (r) => percent(r.same) },
      { label: "different classes", numeric: true, value: (r) => r.different, text: (r) => percent(r.different) },
      { label: "by class", value: (r) => Math.max(...r.by), numeric: true, cell: (r) => byClass(r.by) },
    ] : counted ? [{ label: "frequency", numeric: true, value: (r) => r.same, text: (r) => percent(r.same) }] : []),
  ],
  rows: pairRows, search: (r) => `${r.i} ${r.j} ${effect(r.weight)}`, sort: [3, true], page: 12,
});

table("features-table", {
  caption: "Features, by weight",
  columns: [
    { label: "feature", head: true, text: (r) => r.name },
    { label: "index, from 0", numeric: true, value: (r) => r.feature, text: (r) => thousands(r.feature) },
    { label: "weight", numeric: true, value: (r) => r.weight, cell: (r) => el("data", { value: r.weight }, short(r.weight)) },
    { label: "pairs", numeric: true, value: (r) => r.nPairs, text: (r) => thousands(r.nPairs) },
    ...(counted ? [{ label: "training rows", numeric: true, value: (r) => r.share, text: (r) => percent(r.share) }] : []),
    ...(counted && classes.length > 1 ? [{ label: "by class", numeric: true, value: (r) => Math.max(...r.by), cell: (r) => byClass(r.by) }] : []),
  ],
  rows: features.id.map((id, at) => ({ name: names[id], feature: data.names.feature[id], weight: features.weight[at], nPairs: features.n_pairs[at], share: features.share[at], by: features.by_class[at] })),
  search: (r) => `${r.name} ${r.feature}`, sort: [2, true], page: 12,
});
