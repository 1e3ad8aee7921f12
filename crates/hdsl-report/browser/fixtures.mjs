// The reports under test, made by the program in a temporary folder.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const hdsl = process.env.HDSL;
export const folder = mkdtempSync(join(tmpdir(), "hdsl-browser-"));
export const cleanUp = () => rmSync(folder, { recursive: true, force: true });
const at = (...names) => join(folder, ...names);

export function run(...args) {
  return execFileSync(hdsl, args, { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28 });
}
export const json = (...args) => JSON.parse(run(...args, "--json"));

// The page of the demo, and its files.
run("demo", "--dir", "demo");
export const demo = {
  page: at("demo", "report.html"),
  model: "demo/model.hdsl", train: "demo/train.svm", test: "demo/test.svm", names: "demo/names.txt",
};

// A model alone.
run("report", demo.model, "-o", "alone.html");
export const alone = { page: at("alone.html") };

// Names, classes and texts that could be interpreted as markup, script, a template or a formula.
export const hostileNames = [
  "<script>window.pwned = 1</script>", '"};window.pwned = 2;//', "</script><script>window.pwned = 3</script>", "<img src=x onerror=window.pwned=4>",
  "<b>bold</b>", "&lt;i&gt;", "%{x}", "$x^2$", "{{7*7}}", "<a href=javascript:window.pwned=5>link</a>", "line\u2028separator", "'; drop", "<!--", "</table>", "\\u003cb\\u003e", "<svg/onload=window.pwned=6>",
];
export const hostileClasses = ["<img/src=x/onerror=window.pwned=7>", "</script>", "%{x}<br>"];
export const hostileText = "before <script>window.pwned = 8</script> after & <b>more</b>";
{
  const names = readFileSync(at("demo", "names.txt"), "utf8").split("\n");
  json("explain", demo.model, "--top", "0").features.forEach((f, n) => { names[f.feature] = hostileNames[n % hostileNames.length]; });
  writeFileSync(at("hostile.txt"), names.join("\n"));
  for (const part of ["train", "test"]) {
    const lines = readFileSync(at("demo", `${part}.svm`), "utf8").trimEnd().split("\n").map((line) => line.replace("bland-kind-cheap", hostileClasses[0]).replace("bland-kind-dear", hostileClasses[1]).replace("tasty-rude-dear", hostileClasses[2]));
    writeFileSync(at(`hostile-${part}.svm`), `${lines.join("\n")}\n`);
    writeFileSync(at(`hostile-${part}.tsv`), `${lines.map((line, n) => `${line.split(" ")[0]}\t${n} ${hostileText}`).join("\n")}\n`);
  }
  run("report", demo.model, "--train", "hostile-train.svm", "--test", "hostile-test.svm", "--names", "hostile.txt", "--text", "hostile-train.tsv", "hostile-test.tsv", "-o", "hostile.html");
}
export const hostile = { page: at("hostile.html") };

// Records with their texts.
run("demo", "--text", "--dir", "texts");
export const withTexts = { page: at("texts", "report.html") };

// A model on top of a base, learned from judgments of the first rows of the demo.
{
  const rows = 60;
  const lines = readFileSync(at("demo", "train.svm"), "utf8").trimEnd().split("\n");
  const queries = readFileSync(at("demo", "test.svm"), "utf8").trimEnd().split("\n").slice(0, rows);
  const classOf = (line) => line.split(" ")[0];
  writeFileSync(at("queries.svm"), `${queries.join("\n")}\n`);
  const judgments = queries.flatMap((query, q) => lines.flatMap((line, d) => (classOf(line) === classOf(query) && d < 400 ? [`${q} ${d} 1`] : [])));
  writeFileSync(at("qrels.txt"), `${judgments.join("\n")}\n`);
  run("train", demo.train, "--lambda", "10", "--base", "0.5", "--preprocess", "unit", "--max-iter", "150", "-o", "base.hdsl");
  run("report", "base.hdsl", "--train", demo.train, "--test", demo.test, "--names", demo.names, "-o", "base.html");
  run("report", "base.hdsl", "--train", demo.train, "--queries", "queries.svm", "--judgments", "qrels.txt", "--names", demo.names, "-o", "judged.html");
}
export const base = { page: at("base.html"), model: "base.hdsl" };
export const judged = { page: at("judged.html"), model: "base.hdsl", queries: "queries.svm", judgments: "qrels.txt" };

// A page at the size limits.
export const large = { page: at("large.html") };
execFileSync(process.env.LARGE, [large.page], { stdio: "ignore" });
