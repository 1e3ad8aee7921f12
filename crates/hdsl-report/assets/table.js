// A table with sorting, search and pages. Columns: { label, text(row), value(row), numeric, cell(row), head }.

function table(target, { caption, columns, rows, search, page = 20, sort = null, more = null }) {
  const box = typeof target === "string" ? byId(target) : target;
  if (!box) return null;
  let shown = rows.slice();
  let at = 0;
  let order = sort;
  const status = el("span", { role: "status", class: "small" });
  const body = el("tbody");
  const heads = columns.map((column, number) => {
    const button = el("button", { type: "button", onclick: () => sortBy(number) }, column.label);
    return el("th", { scope: "col", class: column.numeric ? "numeric" : "" }, button);
  });
  const before = el("button", { type: "button", class: "quiet", onclick: () => turn(-1) }, "Previous");
  const after = el("button", { type: "button", class: "quiet", onclick: () => turn(1) }, "Next");
  const input = el("input", { type: "search", autocomplete: "off", oninput: refresh });
  const value = (column, row) => (column.value ? column.value(row) : column.text(row));

  function sortBy(number) {
    const descending = order && order[0] === number ? !order[1] : Boolean(columns[number].numeric);
    order = [number, descending];
    refresh();
  }
  function turn(by) {
    at = Math.max(0, at + by * page);
    draw();
  }
  function refresh() {
    const query = input.value.trim().toLowerCase();
    shown = query ? rows.filter((row) => search(row).toLowerCase().includes(query)) : rows.slice();
    if (order) {
      const column = columns[order[0]];
      const way = order[1] ? -1 : 1;
      const key = (row) => { const v = value(column, row); return v === null || v === undefined ? -Infinity : v; };
      shown.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return way * (column.numeric ? x - y || 0 : String(x).localeCompare(String(y)));
      });
    }
    at = 0;
    draw();
  }
  function draw() {
    heads.forEach((head, number) => {
      const way = order && order[0] === number ? (order[1] ? "descending" : "ascending") : "none";
      head.setAttribute("aria-sort", way);
    });
    body.replaceChildren(...shown.slice(at, at + page).map((row) => {
      const cells = columns.map((column) => {
        const content = column.cell ? column.cell(row) : column.text(row);
        return el(column.head ? "th" : "td", { scope: column.head ? "row" : null, class: column.numeric ? "numeric" : "" }, content);
      });
      return el("tr", {}, ...cells);
    }));
    const last = Math.min(at + page, shown.length);
    status.textContent = shown.length === 0 ? "Nothing found"
      : shown.length <= page ? `${thousands(shown.length)} shown`
        : `${thousands(at + 1)} to ${thousands(last)} of ${thousands(shown.length)}`;
    before.disabled = at === 0;
    after.disabled = last >= shown.length;
    const turns = rows.length > page;
    before.hidden = after.hidden = !turns;
  }
  // The rows shown now, on all pages, in their order; numbers without rounding.
  function save() {
    const quoted = (v) => { const t = v === null || v === undefined ? "" : String(v); return /[",\r\n]/.test(t) ? `"${t.replaceAll('"', '""')}"` : t; };
    const lines = [columns.map((c) => c.label), ...shown.map((row) => columns.map((c) => (c.numeric ? value(c, row) : c.text ? c.text(row) : value(c, row))))];
    const csv = lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
    const url = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    const name = caption.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
    el("a", { href: url, download: `${name}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
  const csv = el("button", { type: "button", class: "quiet", onclick: save, "aria-label": `Download as CSV: ${caption}` }, "CSV");
  const top = search ? el("div", { class: "controls" }, el("label", {}, "Search ", input), status, csv) : el("div", { class: "controls" }, status, csv);
  box.replaceChildren(
    top,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", {}, el("caption", { class: "hidden" }, caption), el("thead", {}, el("tr", {}, ...heads)), body)),
    el("div", { class: "pager" }, before, after),
  );
  refresh();
  return { find(text) { input.value = text; refresh(); } };
}

// A collapsed table with the numbers of a chart, filled in when it is opened.
function asTable(id, summary, settings) {
  const box = byId(id);
  if (!box) return;
  const inside = el("div");
  let made = false;
  const details = el("details", { class: "table", ontoggle: () => { if (details.open && !made) { made = true; table(inside, settings); } } }, el("summary", {}, summary), inside);
  box.replaceChildren(details);
}
