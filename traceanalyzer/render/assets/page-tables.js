// What a cell sorts by: a number with its unit, the begin of an interval, the base of "base > head"; NaN for words.
TA.number = (text) => {
  const found = /^<?([+-]?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)(?:-[\d,.]+)?\s?(ns|us|ms|s|%|x)?[?!]?(?: [>(].*)?$/.exec(text);
  return found ? Number(found[1].replace(/,/g, "")) * ({ns: 1e-3, ms: 1e3, s: 1e6}[found[2]] || 1) : NaN;
};

// Shows every row of a long table.
TA.unfold = (table) => {
  table.classList.remove("folded");
  table.unfolds?.remove();
};

// Tables that sort by a click on a column's title, and a field that hides the rows without a text.
// Each row (with the rows that belong to it) is a <tbody>; cells with a number for sorting carry it in data-v.
TA.tables = () => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const titles = [...table.tHead.rows[0].cells];
    titles.forEach((title, column) => {
      const button = TA.element("button", "", title.textContent);
      button.type = "button";
      title.replaceChildren(button);
      button.addEventListener("click", () => sort(table, titles, column));
    });
  }
  const value = (body, column) => {
    const cell = body.rows[0].cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    const number = TA.number(text);
    return Number.isNaN(number) ? text : number;
  };
  // what has no value stays last either way
  const missing = (v) => v === "" || v === "n/a";
  const sort = (table, titles, column) => {
    const bodies = [...table.tBodies];
    const values = new Map(bodies.map((b) => [b, value(b, column)]));
    const numeric = bodies.some((b) => typeof values.get(b) === "number");
    const now = titles[column].getAttribute("aria-sort");
    const up = now ? now === "descending" : !numeric;
    titles.forEach((t) => t.removeAttribute("aria-sort"));
    titles[column].setAttribute("aria-sort", up ? "ascending" : "descending");
    bodies.sort((a, b) => {
      const x = values.get(a), y = values.get(b);
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      const order = typeof x === "number" ? x - y : x.localeCompare(y);
      return up ? order : -order;
    });
    table.append(...bodies);
  };
  for (const table of document.querySelectorAll("table.long")) {
    const rows = table.tBodies.length, button = TA.button(`show all ${TA.count(rows)} rows`, () => TA.unfold(table));
    table.classList.add("folded");
    table.closest(".scroll").after(button);
    button.className = "unfold";
    table.unfolds = button;
  }
  for (const field of document.querySelectorAll("input[data-filters]")) {
    const bodies = [...document.getElementById(field.dataset.filters).tBodies];
    const texts = new Map(bodies.map((b) => [b, (b.textContent + " " + [...b.querySelectorAll("[title]")].map((e) => e.title).join(" ")).toLowerCase()]));
    const count = document.getElementById(field.id + "-count");
    const apply = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const body of bodies) {
        const fits = words.every((w) => texts.get(body).includes(w));
        body.hidden = !fits;
        shown += fits;
      }
      if (words.length) TA.unfold(document.getElementById(field.dataset.filters));
      count.textContent = words.length ? `${shown} of ${bodies.length} shown` : `${bodies.length} ${bodies.length === 1 ? "row" : "rows"}`;
    };
    field.addEventListener("input", apply);
    apply();
    // a link to a row that the filter hides would lead nowhere
    field.clear = () => { field.value = ""; apply(); };
  }
};
