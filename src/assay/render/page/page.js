// Tables that sort, filter and show long rows page by page; charts that answer the pointer. Text is only ever set as text.
const ROWS = 50, FILTERED_FROM = 13, ERRORS = 1; // of the levels of Vega: values without intervals are no news
const byId = (id) => document.getElementById(id);
const say = (text) => { byId("said").textContent = text; };

function make(tag, attributes = {}, ...children) {
  const element = document.createElementNS(
    ["svg", "line", "circle"].includes(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function readData() {
  const text = byId("data").textContent;
  return JSON.parse(text.startsWith("{") ? text : await unpack(text));
}

// ---- Tables

const number = (key) => Number(String(key).replace("inf", "Infinity"));

// The rows that stand in the page.
function standingRows(table) {
  return [...table.tBodies[0].rows].map((row) => ({
    keys: [...row.cells].map((cell) => cell.dataset.key ? number(cell.dataset.key) : cell.textContent.trim()),
    words: row.textContent.toLowerCase(),
    element: () => row,
  }));
}

// The rows of a long table, which become elements when they are shown.
function storedRows({ columns, rows }, headers) {
  const part = (list, i) => list?.[i] ?? "";
  const plain = (text) => typeof text === "string" ? text : text.filter((_, i) => i % 2).join("");
  const count = Math.max(...columns.flatMap((column) => Object.values(column).map((list) => list.length)));
  return Array.from({ length: count }, (_, i) => ({
    keys: columns.map((column) => part(column.value, i) === "" ? plain(part(column.text, i)) : number(column.value[i])),
    get words() {
      const words = columns.map((column) => `${part(column.mark, i)} ${plain(part(column.text, i))}`).join(" ");
      Object.defineProperty(this, "words", { value: words.toLowerCase() });
      return this.words;
    },
    element() {
      const row = make("tr");
      if (part(rows.style, i)) row.className = rows.style[i];
      if (part(rows.title, i)) row.title = rows.title[i];
      const verdict = columns.find((column) => column.verdict?.[i])?.text?.[i];
      const tone = Array.isArray(verdict) ? verdict[0] : "";
      row.append(...columns.map((column, k) => storedCell(column, i, headers[k], k === 0, tone)));
      return row;
    },
  }));
}

function storedCell(column, i, header, isFirst, tone) {
  const cell = make(isFirst ? "th" : "td", isFirst ? { scope: "row" } : { "data-name": header.textContent });
  cell.className = header.className;
  const text = column.text?.[i] ?? "", value = column.value?.[i] ?? "", at = column.at?.[i];
  const parts = typeof text === "string" ? [text] : [];
  for (let k = 0; typeof text !== "string" && k < text.length; k += 2)
    parts.push(make("span", { class: text[k] }, text[k + 1]));
  if (column.mark?.[i]) {
    cell.classList.add("marked");
    cell.append(make("em", {}, column.mark[i]), " ");
  }
  if (column.verdict?.[i]) cell.classList.add("verdict");
  const link = column.link?.[i] ? [make("a", { href: `#${column.link[i]}` }, ...parts)] : parts;
  cell.append(make("span", value === "" ? {} : { title: value }, ...link));
  if (at) {
    cell.append(make("svg", { class: tone, viewBox: "0 0 100 12", role: "img", "aria-label": "around 0" },
      make("line", { class: "zero", x1: 50, x2: 50, y1: 0, y2: 12 }),
      make("line", { class: "range", x1: at[0], x2: at[1], y1: 6, y2: 6 }),
      make("circle", { cx: at[2], cy: 6, r: 2.5 })));
  }
  if (column.below?.[i]) cell.append(make("small", {}, column.below[i]));
  return cell;
}

// Words that must all stand in a row, and conditions such as n>=100 on the column of that name.
function matcher(query, names) {
  const tests = query.toLowerCase().split(/\s+/).filter(Boolean).map((term) => {
    const [, name, sign, bound] = term.match(/^(.+?)(<=|>=|<|>)(-?[\d.]+(?:e-?\d+)?)$/) ?? [];
    const k = names.indexOf(name);
    if (k < 0) return (row) => row.words.includes(term);
    const holds = { "<": (x) => x < bound, ">": (x) => x > bound, "<=": (x) => x <= bound, ">=": (x) => x >= bound }[sign];
    return (row) => typeof row.keys[k] === "number" && holds(row.keys[k]);
  });
  return (row) => tests.every((test) => test(row));
}

const collator = new Intl.Collator(undefined, { numeric: true });

function compareBy(column, sign) {
  return (a, b) => {
    const [x, y] = [a.keys[column], b.keys[column]];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    if (typeof x === "number" && typeof y === "number") return sign * (x - y || 0);
    return sign * collator.compare(x, y);
  };
}

function liven(grid, stored) {
  const table = grid.querySelector("table"), headers = [...table.tHead.rows[0].cells];
  const all = stored ? storedRows(stored, headers) : standingRows(table);
  const names = headers.map((header) => header.textContent.toLowerCase().replace(/\s+/g, ""));
  const isLong = all.length > ROWS;
  let found = all, start = 0, sorted = null;
  const pages = make("p", { class: "pages" });
  const show = () => {
    table.tBodies[0].replaceChildren(...found.slice(start, start + ROWS).map((row) => row.element()));
    if (!isLong) return;
    const to = (text, label, at) => {
      const button = make("button", { type: "button", "aria-label": label }, text);
      button.disabled = at < 0 || at >= found.length;
      button.addEventListener("click", () => { start = at; show(); });
      return button;
    };
    const last = Math.min(start + ROWS, found.length);
    const where = found.length ? `${(start + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ` : "";
    pages.replaceChildren(
      to("‹", "previous rows", start - ROWS), `${where}${found.length.toLocaleString("en")} rows`,
      to("›", "next rows", start + ROWS));
  };
  const arrange = (query) => {
    const matches = matcher(query, names);
    found = all.filter((row) => matches(row) && (!grid.keeps || grid.keeps(row)));
    if (sorted) found.sort(sorted);
    start = 0;
    show();
  };
  const box = make("input", { type: "search", placeholder: `Filter ${all.length.toLocaleString("en")} rows: words${example(names, all)}`, "aria-label": "filter rows" });
  box.addEventListener("input", () => {
    arrange(box.value);
    say(`${found.length} of ${all.length} rows`);
  });
  if (all.length >= FILTERED_FROM) grid.prepend(box);
  grid.addEventListener("restrict", () => arrange(box.value)); // after `grid.keeps` was set
  if (isLong) {
    grid.querySelector(".rest")?.remove();
    grid.append(pages);
    show();
  }
  headers.forEach((header, column) => header.firstElementChild.addEventListener("click", () => {
    const first = header.classList.contains("number") ? "descending" : "ascending";
    const now = header.getAttribute("aria-sort");
    const order = now === null ? first : now === "ascending" ? "descending" : "ascending";
    for (const other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order);
    sorted = compareBy(column, order === "ascending" ? 1 : -1);
    arrange(box.value);
    say(`sorted by ${header.textContent}, ${order}`);
  }));
}

// A condition that the filter of a table understands.
function example(names, rows) {
  const column = names.findIndex((name, k) => name && typeof rows[0]?.keys[k] === "number");
  return column < 0 ? "" : `, ${names[column]}>${Number.isInteger(rows[0].keys[column]) ? 100 : 0.5}`;
}

// ---- Charts

let loading = null;

function charts() {
  loading ??= unpack(byId("library").textContent).then((text) => {
    const script = document.createElement("script");
    script.textContent = text; // the policy of the page knows its hash
    document.head.append(script);
    return globalThis.assayEmbed;
  });
  return loading;
}

async function draw(figure, chart) {
  const embed = await charts();
  const isLarge = figure.classList.contains("large");
  const old = figure.querySelector(":scope > svg, :scope > .chart"), box = make("div", { class: "chart" });
  const spec = structuredClone(figure.restricted ?? chart), width = figure.clientWidth;
  const zoom = spec.usermeta?.zoom;
  if (!width) return observer.observe(figure); // it was hidden while the library was loading
  if (spec.name !== "rows") spec.height = Math.round(spec.height * Math.min(isLarge ? 1.6 : 1, width / spec.width));
  spec.width = width;
  if (isLarge && zoom) {
    const params = (spec.layer[zoom.layer].params ??= []);
    for (const { encoding } of spec.layer) // ticks that were chosen for the whole are too few for a part
      for (const { axis } of Object.values(encoding)) delete axis?.values;
    params.push({ name: "zoom", select: { type: "interval", encodings: zoom.encodings }, bind: "scales" });
  }
  const options = { mode: "vega-lite", ast: true, actions: false, renderer: "svg", defaultStyle: false, logLevel: ERRORS };
  const { finalize } = await embed(box, spec, { ...options, tooltip: { theme: "assay", disableDefaultStyle: true } });
  box.setAttribute("role", "img"); // only now, as the library sets both
  box.setAttribute("aria-label", old.getAttribute("aria-label"));
  figure.finalize?.();
  figure.finalize = finalize;
  old.replaceWith(box);
  figure.dataset.width = width;
}

function enlargeable(figure, chart) {
  const title = figure.querySelector("h4");
  const button = make("button", { type: "button", class: "enlarge", "aria-pressed": "false" }, "⤢");
  button.setAttribute("aria-label", `enlarge ${title.textContent}`);
  button.title = "Enlarge";
  const hint = make("p", { class: "methods" }, "Zoom with the wheel, move by dragging; a double click shows all.");
  button.addEventListener("click", async () => {
    const isLarge = figure.classList.toggle("large");
    button.setAttribute("aria-pressed", isLarge);
    if (isLarge && chart.usermeta?.zoom) title.after(hint); else hint.remove();
    await draw(figure, chart);
    figure.scrollIntoView({ block: "nearest" });
  });
  title.append(" ", button);
}

let observer = null;

function livenCharts(root, specs) {
  observer ??= new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      draw(target, specs[target.dataset.chart]).catch(console.error);
    }
  }, { rootMargin: "300px" });
  for (const figure of root.querySelectorAll("figure[data-chart]")) {
    enlargeable(figure, specs[figure.dataset.chart]);
    observer.observe(figure);
  }
}

function redrawOnResize(specs) {
  let waiting = null;
  const redraw = () => {
    for (const figure of document.querySelectorAll("figure[data-width]"))
      if (figure.clientWidth && Number(figure.dataset.width) !== figure.clientWidth)
        draw(figure, specs[figure.dataset.chart]).catch(console.error);
  };
  new ResizeObserver(() => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 200);
  }).observe(document.body);
}

readData().then(({ charts: specs, grids, view }) => {
  const hasCharts = byId("library") && globalThis.DecompressionStream;
  const livenPart = (part) => {
    if (!part || part.dataset.live === "") return;
    part.dataset.live = "";
    for (const grid of part.querySelectorAll(".grid")) liven(grid, grids[grid.dataset.rows]);
    if (hasCharts) livenCharts(part, specs);
  };
  livenPart(document.querySelector(".index"));
  const livenShown = () => livenPart(location.hash && byId(location.hash.slice(1))?.closest(".sheet"));
  addEventListener("hashchange", livenShown);
  livenShown();
  if (hasCharts) redrawOnResize(specs);
  if (view) livenView(view, specs);
  document.documentElement.dataset.live = "";
}).catch(console.error);
