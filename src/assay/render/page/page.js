// A click on the name of a column sorts its table: numbers by value, the largest first; text as text; the undefined last.
for (const button of document.querySelectorAll("table.sortable th button")) {
  button.addEventListener("click", () => {
    const header = button.parentElement;
    const table = header.closest("table");
    const column = header.cellIndex;
    const first = header.classList.contains("number") ? "descending" : "ascending";
    const now = header.getAttribute("aria-sort");
    const order = now === null ? first : now === "ascending" ? "descending" : "ascending";
    const sign = order === "ascending" ? 1 : -1;
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order);
    const key = (row) => {
      const cell = row.cells[column];
      const word = (cell.dataset.key ?? "").replace("inf", "Infinity");
      return word === "" ? cell.textContent : Number(word);
    };
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      if (typeof x === "number" && typeof y === "number") return sign * (x - y || 0);
      return sign * String(x).localeCompare(String(y), undefined, { numeric: true });
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(compare));
    const said = document.getElementById("said");
    if (said) said.textContent = `sorted by ${button.textContent}, ${order}`;
  });
}
