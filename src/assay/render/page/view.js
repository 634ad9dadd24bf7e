// A page of many reports: the runs and plots that are shown, and a comparison of any two.
function livenView({ runs, pairs, metrics }, specs) {
  const field = (name, input) => make("label", {}, name, input);
  const options = (names) => names.map((name, i) => make("option", { value: i }, name));
  const search = make("input", { type: "search", placeholder: "model, file, commit" });
  const [from, to] = [make("input", { type: "date" }), make("input", { type: "date" })];
  const metric = make("select", {}, make("option", { value: "" }, "all"), ...options(metrics));
  const chosen = runs.map((run) => `${run.name} (${run.made.slice(0, 10)})`);
  const [a, b] = [make("select", {}, ...options(chosen)), make("select", {}, ...options(chosen))];
  a.value = Math.max(0, runs.length - 2);
  b.value = runs.length - 1;
  const go = make("button", { type: "button" }, "Compare");
  const found = make("div", { class: "found", role: "status" });
  const facts = document.querySelector(".index .facts");
  facts.after(
    make("div", { class: "picker" }, field("metric", metric), field("runs", search), field("from", from), field("to", to)),
    make("div", { class: "picker" }, field("compare the baseline", a), field("with", b), go), found);

  const shows = (run) => run.words.includes(search.value.toLowerCase().trim())
    && (!from.value || run.made.slice(0, 10) >= from.value) && (!to.value || run.made.slice(0, 10) <= to.value);
  const arrange = () => {
    const names = new Set(runs.filter(shows).map((run) => run.name));
    const grid = document.querySelector(".index .grid");
    grid.keeps = (row) => names.has(row.keys[0]);
    grid.dispatchEvent(new Event("restrict"));
    for (const figure of document.querySelectorAll(".index figure[data-chart]")) {
      const chart = specs[figure.dataset.chart];
      figure.hidden = metric.value !== "" && figure.querySelector("h4").firstChild.textContent !== metrics[metric.value];
      figure.restricted = restricted(chart, (row) => names.has(row.of));
      if (figure.dataset.width && !figure.hidden) draw(figure, chart).catch(console.error);
    }
  };
  for (const input of [search, from, to, metric]) input.addEventListener("input", arrange);
  go.addEventListener("click", () => {
    const sheet = pairs[`${a.value}-${b.value}`];
    found.replaceChildren();
    if (sheet) location.hash = sheet;
    else if (a.value === b.value) found.append(make("p", {}, "Choose two different runs."));
    else found.append(...sideBySide(runs[a.value], runs[b.value]));
  });
}

// A chart of the rows that are shown.
function restricted(chart, keeps) {
  const spec = structuredClone(chart);
  spec.data.values = spec.data.values.filter(keeps);
  const labels = new Set(spec.data.values.map((row) => row.label));
  for (const { encoding } of spec.layer)
    if (encoding.x?.scale?.domain) encoding.x.scale.domain = encoding.x.scale.domain.filter((label) => labels.has(label));
  return spec;
}

// The values of two runs that were not compared sample by sample.
function sideBySide(a, b) {
  const names = Object.keys(a.values).filter((name) => name in b.values);
  const rows = names.map((name) => {
    const [x, y] = [a.values[name], b.values[name]];
    const difference = typeof x[0] === "number" && typeof y[0] === "number" ? y[0] - x[0] : NaN;
    const shown = Number.isNaN(difference) ? "–" : `${difference > 0 ? "+" : ""}${Number(difference.toPrecision(4))}`;
    return make("tr", {}, make("th", { scope: "row" }, name), ...[x[1], y[1], shown].map((text) => make("td", { class: "number" }, text)));
  });
  const head = ["metric", a.name, b.name, "difference"].map((text, i) => make("th", { class: i ? "number" : "" }, text));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  const said = "Values alone: these two were not tested against each other, so the difference may be noise. For a test: "
    + `assay compare ${a.file} ${b.file}`;
  return [make("h3", {}, `${b.name} against ${a.name}`), make("div", { class: "scroll" }, table), make("p", { class: "methods" }, said)];
}
