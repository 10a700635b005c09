// The panel of a selected row: what it is, when, who launched it, what the device waited for before it.
TA.panel = (t, number) => {
  const panel = t.part("panel"), {model} = t;
  if (!panel) return;
  panel.hidden = number < 0;
  if (number < 0) { panel.replaceChildren(); TA.mark(-1); return; }
  const r = model.row(number), device = r.lane.kind === "stream", kernel = document.getElementById(`kernel-${r.name + 1}`);
  const known = device && !(r.tag & 4) && kernel;
  const full = (known && kernel.querySelector("span.name")?.title) || model.names[r.name];
  const linked = model.linked(number), call = linked >= 0 ? model.row(linked) : null;
  const facts = [["start", TA.moment(r.start) + (t.zero ? ` (${TA.moment(r.start - t.zero)} on this axis)` : "")], ["duration", TA.length(r.dur)], [device ? "stream" : "lane", r.lane.label]];
  const other = call && TA.button(`${model.names[call.name]} at ${TA.moment(call.start)}, ${TA.length(call.dur)}`, () => t.select(linked), "Select that row");
  if (device) {
    facts.push(["launched by", other || "no launch call of it is shown"]);
    if (call) facts.push(["launch latency", r.start < call.end ? `started ${TA.length(call.end - r.start)} before its call returned` : `${TA.length(r.start - call.end)} from the end of its call`]);
    const gap = r.lane.gaps.get(r.i), cause = gap && model.found.causes[gap[1]];
    facts.push(["gap before", gap ? `${TA.length(gap[0])} in which the device was idle: ${cause[0]}${cause[1] ? ` (${cause[1]})` : ""}` : TA.gapless(t, r)]);
    if (call) facts.push(["starved", r.tag & 1 ? "yes: its launch met an empty stream" + (r.tag & 2 ? ", after a synchronise" : "") : "no: work was queued before it"]);
    else facts.push(["starved", "not judged: without a launch call"]);
  } else if (other) facts.push(["launches", other]);
  const list = TA.element("dl");
  for (const [name, value] of facts) {
    const pair = TA.element("div");
    const said = TA.element("dd");
    said.append(value);
    pair.append(TA.element("dt", "", name), said);
    list.append(pair);
  }
  const title = TA.element("p", "what");
  title.append(TA.element("span", "muted", `${model.kind(r)} `), TA.element("strong", "name", full));
  const text = () => [`${model.kind(r)} ${full}`, ...facts.map(([name, value]) => `${name}: ${value.textContent ?? value}`)].join("\n");
  const tools = TA.element("p", "tools");
  const copy = TA.button("copy", () => TA.copy(copy, text()), "Copy these lines");
  const link = TA.button("link", () => { TA.address?.now(); TA.copy(link, location.href); }, "Copy the address of this row");
  tools.append(copy, " ", link, " ", TA.button("zoom", () => t.show(r.start - r.dur, r.end + r.dur), "Zoom to it (f)"));
  if (known) {
    const row = TA.element("a", "", "row in the table");
    row.href = `#${kernel.id}`;
    tools.append(" ", row);
  }
  tools.append(" ", TA.button("close", () => { t.select(-1); t.chart.focus({preventScroll: true}); }, "Close (Escape)"));
  panel.replaceChildren(title, list, tools);
  t.say(text().replaceAll("\n", ", "));
  TA.mark(known ? r.name : -1);
};

TA.gapless = (t, r) => {
  if (t.model.found.noCauses) return "host and device clocks disagree: not known";
  return r.i === 0 ? "first row shown of its stream" : "none: the device was busy until it began, or other work ran";
};

// Marks the table row of a kernel, and with `light` its bars in the timeline.
TA.mark = (kernel) => {
  document.querySelectorAll("#kernel-table tbody.marked").forEach((b) => b.classList.remove("marked"));
  document.getElementById(`kernel-${kernel + 1}`)?.classList.add("marked");
};
TA.light = (kernel) => {
  const t = TA.views.timeline;
  if (!t) return;
  t.chosen = kernel === null ? null : (lane, i) => lane.kind === "stream" && !(lane.tag[i] & 4) && lane.name[i] === kernel;
  t.lit = kernel;
  TA.mark(kernel ?? -1);
  t.draw();
};

// `/`: rows whose name holds a text, the next and the one before
TA.search = (t) => {
  const field = t.part("search"), count = t.part("count"), {model} = t;
  if (!field) return null;
  let rows = [];
  const apply = () => {
    const wanted = field.value.trim().toLowerCase();
    const names = new Set(), texts = model.names.map((n) => n.toLowerCase());
    if (wanted) texts.forEach((n, i) => { if (n.includes(wanted)) names.add(i); });
    rows = [];
    if (wanted) for (const lane of model.lanes) lane.name.forEach((n, i) => { if (names.has(n)) rows.push(lane.first + i); });
    const start = new Map(rows.map((r) => [r, model.row(r).start]));
    rows.sort((a, b) => start.get(a) - start.get(b) || a - b);
    t.chosen = wanted ? (lane, i) => names.has(lane.name[i]) : null;
    count.textContent = wanted ? `${TA.count(rows.length)} found${model.whole ? "" : " in the rows shown"}` : "";
    t.draw();
  };
  const go = (by) => {
    if (!rows.length) return;
    const now = rows.indexOf(t.selected);
    let next = now < 0 ? (by > 0 ? rows.findIndex((r) => model.row(r).start >= t.from) : rows.length - 1) : (now + by + rows.length) % rows.length;
    if (next < 0) next = 0;
    t.select(rows[next]);
    count.textContent = `${TA.count(next + 1)} of ${TA.count(rows.length)}`;
  };
  field.addEventListener("input", apply);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { go(event.shiftKey ? -1 : 1); event.preventDefault(); }
    if (event.key === "Escape") { found.clear(); t.chart.focus({preventScroll: true}); event.preventDefault(); }
  });
  for (const [name, by] of [["search-next", 1], ["search-previous", -1]]) t.part(name)?.addEventListener("click", () => go(by));
  const found = {open: () => { field.focus(); field.select(); }, clear: () => { field.value = ""; apply(); }, go};
  return found;
};
