// Makes tables with data-sort sortable by a button in each heading, shows where a table continues at the right, and unfolds
// what a link leads to. Without the script, all rows are there in their first order.
"use strict";
const valueOf = (row, column) => {
  const cell = row.cells[column];
  if (cell.matches("th, .t")) {
    const words = cell.textContent.trim().toLowerCase();
    return words === "\u2013" ? NaN : words;
  }
  const text = cell.firstChild ? cell.firstChild.textContent : "";
  return parseFloat(text.replace(/\u2212/g, "-").replace(/[,\u25e6\u25b2\u25bc%+\s]/g, ""));
};
const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
// A table that is wider than its frame fades out at the right until it is scrolled to the end.
const watched = new ResizeObserver((entries) => entries.forEach(({ target }) => fade(target.closest(".scroll"))));
const fade = (frame) => frame.classList.toggle("more", frame.scrollWidth - frame.clientWidth - frame.scrollLeft > 2);
for (const frame of document.querySelectorAll(".scroll")) {
  watched.observe(frame);
  watched.observe(frame.firstElementChild);
  frame.addEventListener("scroll", () => fade(frame), { passive: true });
}
for (const table of document.querySelectorAll("table[data-sort]")) {
  const body = table.tBodies[0];
  const first = [...body.rows];
  const heads = [...table.querySelectorAll("th[data-column]")];
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      const column = Number(head.dataset.column);
      let rows = first;
      if (was !== "descending") {
        const sign = was === "ascending" ? -1 : 1;
        head.setAttribute("aria-sort", was === "ascending" ? "descending" : "ascending");
        const keyed = first.map((row) => [valueOf(row, column), row]);
        keyed.sort(([a], [b]) => Number.isNaN(a) - Number.isNaN(b) || sign * compare(a, b)); // missing values last
        rows = keyed.map(([, row]) => row);
      }
      body.append(...rows);
    });
  }
}
const unfold = () => {
  const target = document.getElementById(location.hash.slice(1));
  for (let one = target; one; one = one.parentElement) {
    if (one.tagName === "DETAILS") one.open = true;
  }
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
