// Section 9: measures of rankings by judgments, for all queries and for each.

const { judged } = data;
if (judged) {
  const { similarities } = judged;
  const learned = similarities.length - 1;
  const places = (x) => x.toFixed(4);
  const queries = (n) => (n === 1 ? "1 query" : `${thousands(n)} queries`);
  const best = similarities.slice(0, learned).reduce((a, b) => (b.ndcg > a.ndcg ? b : a), similarities[0]);
  const [difference, p] = best.versus ?? [0, 1];
  const certain = p < 0.05 ? "" : " The difference may be chance.";
  setText("judged-words", `nDCG@10 is ${places(similarities[learned].ndcg)} under the learned similarity and ${places(best.ndcg)} under the ${best.name}, the best similarity without learning: a difference of ${signed(difference)} (p = ${p < 0.01 ? p.toFixed(4) : p.toFixed(2)}).${certain}`);
  setText("judged-caption", `Means over ${queries(judged.n_queries)} with a relevant document${judged.n_queries < judged.n_judged ? `, a sample of ${thousands(judged.n_judged)}` : ""}, each with ${count(judged.n_documents, "document")} to rank; judgments: ${judged.source}. Ties count in expectation over all orders. The last two columns are the difference in nDCG@10 and the p value of a paired randomization test of it. If the model was trained on these judgments, its measures are optimistic.`);
  const measure = (label, key) => ({ label, numeric: true, value: (s) => s[key], cell: (s) => el("data", { value: s[key] }, places(s[key])) });
  table("judged-table", {
    caption: "Quality of the rankings by similarity", rows: similarities,
    columns: [
      { label: "similarity", head: true, text: (s) => s.name },
      measure("nDCG@10", "ndcg"), measure("MAP", "map"), measure("recall@10", "recall_at_10"), measure("recall@100", "recall_at_100"), measure("MRR", "mrr"),
      { label: "learned minus this", numeric: true, value: (s) => s.versus?.[0] ?? null, text: (s) => (s.versus ? signed(Number(s.versus[0].toFixed(4))) : "") },
      { label: "p", numeric: true, value: (s) => s.versus?.[1] ?? null, text: (s) => (s.versus ? places(s.versus[1]) : "") },
    ],
  });

  const reference = similarities.indexOf(best);
  const name = (q) => q.name ?? `row ${thousands(q.row)}`;
  const change = (q) => q.ndcg[learned] - q.ndcg[reference];
  table("queries-table", {
    caption: `nDCG@10 of ${judged.queries.length < judged.n_queries ? `the first ${thousands(judged.queries.length)} of ${queries(judged.n_queries)}` : queries(judged.n_queries)}`,
    rows: judged.queries, search: (q) => `${name(q)} ${q.row}`, sort: [4, false], page: 12,
    columns: [
      { label: "query", head: true, text: name, cell: (q) => (judged.are_test_rows ? el("button", { type: "button", class: "link", onclick: () => chooseRow(q.row, true) }, name(q)) : name(q)) },
      { label: "relevant documents", numeric: true, value: (q) => q.n_relevant, text: (q) => thousands(q.n_relevant) },
      { label: best.name, numeric: true, value: (q) => q.ndcg[reference], text: (q) => places(q.ndcg[reference]) },
      { label: "learned", numeric: true, value: (q) => q.ndcg[learned], text: (q) => places(q.ndcg[learned]) },
      { label: "difference", numeric: true, value: change, text: (q) => signed(Number(change(q).toFixed(4))) },
    ],
  });
}

// For tests and measurements: milliseconds until texts and tables were ready.
document.documentElement.dataset.ready = String(Math.round(performance.now()));
