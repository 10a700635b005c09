// A timeline in a section of the page: what is in sight, what is selected, and the hand of the reader (mouse, touch, keys).
// `zero` is the moment that the axis counts from; `most` the height that the chart may take.
TA.timeline = (root, found, {zero = 0, most = 0} = {}) => {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const chart = part("chart"), readout = part("readout"), live = part("live");
  const canvas = TA.element("canvas"), context = canvas.getContext("2d");
  const model = TA.model(found);
  const t = {root, part, chart, model, from: model.begin, to: model.end, gutter: TA.GUTTER(), shown: [], hovered: -1, selected: -1, active: null,
    chosen: null, arrows: true, zero, everyLane: false, listeners: []};
  canvas.setAttribute("aria-hidden", "true");
  const labels = TA.element("div", "lane-labels"), hl = TA.element("div", "hl"), selected = TA.element("div", "hl selected"), other = TA.element("div", "hl linked");
  chart.append(canvas, labels, hl, selected, other);

  // ---- what fits: every lane at its own height, lower where there are many, fewer where they would be too low
  const HIGH = {ranges: 26, operators: 13, calls: 16, stream: 22, depth: 24}, GAP = 5, LEAST = 9;
  const order = () => {
    const place = {};
    const rank = {stream: 0, calls: 1, ranges: 2, operators: 3, depth: 4};
    return model.lanes.map((lane) => [(place[lane.kind] = (place[lane.kind] ?? -1) + 1) * 5 + rank[lane.kind], lane]).sort((a, b) => a[0] - b[0]).map((p) => p[1]);
  };
  const layout = () => {
    t.gutter = TA.GUTTER();
    const width = Math.max(200, chart.clientWidth);
    // the budget is what the first screen has left below the chart's top
    const over = TA.AXIS + TA.PINS + 4, top = chart.getBoundingClientRect().top + scrollY;
    const room = (most || Math.max(150, Math.min(460, innerHeight - top - 8))) - over;
    const natural = (lanes) => lanes.reduce((sum, l) => sum + HIGH[l.kind] + GAP, 0);
    let lanes = model.lanes;
    if (!t.everyLane && innerWidth >= 640) {
      const most = Math.max(2, Math.floor(room / (LEAST + GAP - 2)));
      if (lanes.length > most) { const kept = new Set(order().slice(0, most)); lanes = lanes.filter((l) => kept.has(l)); }
    }
    const fits = t.everyLane || innerWidth < 640 ? 1 : Math.min(1, room / natural(lanes));
    const gap = fits < 1 ? Math.max(2, GAP * fits) : GAP;
    const shrunk = fits < 1 ? (room - gap * lanes.length) / lanes.reduce((sum, l) => sum + HIGH[l.kind], 0) : 1;
    model.lanes.forEach((lane) => { lane.y = undefined; });
    let y = TA.AXIS + TA.PINS;
    for (const lane of lanes) { lane.y = y; lane.h = Math.max(5, Math.floor(HIGH[lane.kind] * shrunk)); y += lane.h + gap; }
    t.shown = lanes;
    // one moment stands at one place in the strip and in the chart
    const strip = part("overview");
    if (strip) strip.style.marginLeft = `${t.gutter}px`;
    t.width = width;
    t.height = Math.ceil(y + 2);
    chart.style.height = `${t.height}px`;
    const ratio = Math.min(2, devicePixelRatio || 1);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(t.height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${t.height}px`;
    t.ratio = ratio;
    labels.replaceChildren(...lanes.map((lane) => {
      const counted = lane.kind === "stream" || lane.kind === "calls" ? `${lane.label} (${TA.count(lane.total)})` : lane.label;
      const label = TA.element("span", "", counted.length * 6.2 > t.gutter - 10 ? lane.label : counted);
      label.title = counted;
      label.style.top = `${lane.y}px`;
      label.style.height = label.style.lineHeight = `${lane.h + 1}px`;
      label.style.width = `${t.gutter - 8}px`;
      label.style.fontSize = `${Math.max(8, Math.min(11.5, lane.h + 1))}px`;
      return label;
    }));
    const more = part("lanes");
    if (more) {
      more.hidden = !(lanes.length < model.lanes.length || t.everyLane || (fits < 0.75 && lanes.length > 6));
      more.textContent = t.everyLane ? "fewer lanes" : lanes.length < model.lanes.length ? `all ${model.lanes.length} lanes` : "higher lanes";
    }
    t.draw();
  };

  // ---- drawing, once a frame
  let waiting = 0;
  t.draw = () => { waiting = waiting || requestAnimationFrame(() => { waiting = 0; paint(); }); };
  const paint = () => {
    const begun = performance.now();
    TA.paint(t, context, t.width, t.height, t.ratio);
    outline(hl, t.hovered);
    outline(selected, t.selected);
    outline(other, model.linked(t.selected >= 0 ? t.selected : t.hovered));
    t.listeners.forEach((l) => l(t.from, t.to));
    if (t.hovered < 0) rest();
    t.painted = performance.now() - begun;
  };
  t.x = (ns) => t.gutter + ((ns - t.from) / (t.to - t.from)) * (t.width - t.gutter);
  t.at = (x) => t.from + ((x - t.gutter) / (t.width - t.gutter)) * (t.to - t.from);
  const outline = (mark, number) => {
    if (number < 0) return void (mark.style.display = "none");
    const r = model.row(number), a = Math.max(t.gutter - 3, t.x(r.start)), b = Math.min(t.width + 3, t.x(r.end));
    const seen = r.lane.y !== undefined && b >= t.gutter - 1 && a <= t.width + 1;
    mark.style.display = seen ? "block" : "none";
    if (!seen) return;
    mark.style.left = `${a - 2}px`;
    mark.style.width = `${Math.max(2, b - a) + 4}px`;
    mark.style.top = `${r.lane.y - 2}px`;
    mark.style.height = `${r.lane.h + 4}px`;
  };
  t.name = (finding) => document.querySelector(`#finding-${finding + 1} h3`)?.dataset.code || "a finding";
  const rest = () => {
    const where = t.active && t.active.finding >= 0 ? `At the evidence of ${t.name(t.active.finding)}` : "In sight";
    const text = `${where}: ${TA.moment(Math.round(t.from - zero))} to ${TA.moment(Math.round(t.to - zero))} (${TA.length(t.to - t.from)}).` + (t.arrows ? "" : " Arrows appear closer in.");
    if (readout.textContent !== text) readout.textContent = text;
  };
  t.say = (text) => { live.textContent = text; };

  // ---- the stretch in sight
  const least = Math.min(50, model.end - model.begin);
  t.show = (from, to, quiet) => {
    if (to - from < least) { const middle = (from + to) / 2; from = middle - least / 2; to = middle + least / 2; }
    const low = t.low ?? model.begin, high = t.high ?? model.end;
    if (to - from >= high - low) { from = low; to = high; }
    if (from < low) { to += low - from; from = low; }
    if (to > high) { from -= to - high; to = high; }
    if (from === t.from && to === t.to) return;
    t.from = from;
    t.to = to;
    t.draw();
    if (!quiet && t.moved) t.moved();
  };
  t.range = () => [t.from, t.to];
  t.whole = () => t.from <= (t.low ?? model.begin) && t.to >= (t.high ?? model.end);
  t.zoom = (factor, at) => {
    const middle = at === undefined ? (t.from + t.to) / 2 : at;
    t.show(middle - (middle - t.from) * factor, middle + (t.to - middle) * factor);
  };
  t.pan = (share) => { const by = (t.to - t.from) * share; t.show(t.from + by, t.to + by); };
  t.follow = (listener) => { t.listeners.push(listener); listener(t.from, t.to); };
  t.open = (view) => { t.active = view; t.show(view.from, view.to); t.draw(); };
  t.reset = () => { t.active = null; t.show(-Infinity, Infinity); t.draw(); };

  // ---- what is under a point, what is selected
  const under = (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const lane = t.shown.find((l) => y >= l.y - 2 && y <= l.y + l.h + 2);
    if (!lane || x < t.gutter) return {lane: x < t.gutter ? null : lane, x, row: -1};
    const slack = ((t.to - t.from) * (event.pointerType === "touch" ? 8 : 3)) / (t.width - t.gutter);
    return {lane, x, row: lane.start.length ? model.nearest(lane, t.at(x), slack) : -1};
  };
  t.select = (number, {move = true, quiet = false} = {}) => {
    t.selected = number;
    if (number >= 0) {
      const r = model.row(number), wide = t.to - t.from;
      if (r.lane.y === undefined) { t.everyLane = true; layout(); }
      if (move && (r.end < t.from + wide * 0.02 || r.start > t.to - wide * 0.02)) t.show(r.start + r.dur / 2 - wide / 2, r.start + r.dur / 2 + wide / 2);
    }
    TA.panel(t, number);
    t.draw();
    if (!quiet && t.chose) t.chose();
  };
  const describe = (number) => {
    const r = model.row(number);
    return `${model.kind(r)} ${model.names[r.name]} at ${TA.moment(r.start - zero)}, ${TA.length(r.dur)} long (${r.lane.label})`;
  };
  const hover = (event) => {
    const {lane, x, row} = under(event);
    const before = t.hovered;
    t.hovered = row;
    if (row >= 0) {
      const linked = model.linked(row), r = model.row(row);
      readout.textContent = describe(row) + (linked < 0 ? "" : (r.lane.kind === "stream" ? "; launched by " : "; launches ") + describe(linked))
        + (r.lane.kind === "stream" && r.tag & 1 ? "; met an empty stream" : "") + ".";
    } else if (lane && lane.kind === "depth") {
      const at = TA.lower(lane.at, t.at(x) + 1) - 1;
      readout.textContent = `${lane.label} at ${TA.moment(Math.round(t.at(x) - zero))}: ${at < 0 ? 0 : lane.depth[at]} queued (most in sight ${lane.most}).`;
    } else rest();
    if (row !== before) t.draw();
  };
  t.describe = describe;
  // rows in the order of time on a lane, lanes in the order of the chart
  const move = (sideways, down) => {
    const lanes = t.shown.filter((l) => l.start.length);
    if (!lanes.length) return;
    if (t.selected < 0) {
      const lane = lanes.find((l) => l.kind === "stream") || lanes[0];
      const [a, b] = model.visible(lane, t.from, t.to);
      return t.select(lane.first + Math.max(0, Math.min(lane.start.length - 1, a < b ? a : TA.lower(lane.start, t.from))));
    }
    const r = model.row(t.selected);
    if (sideways) return t.select(r.lane.first + Math.max(0, Math.min(r.lane.start.length - 1, r.i + sideways)));
    const place = lanes.indexOf(r.lane), next = lanes[Math.max(0, Math.min(lanes.length - 1, place + down))];
    if (next === r.lane) return;
    const after = TA.lower(next.start, r.start);
    t.select(next.first + Math.min(next.start.length - 1, after));
  };
  t.step = (by) => {
    const views = model.views;
    if (!views.length) return;
    const now = views.indexOf(t.active);
    const view = views[now < 0 ? (by > 0 ? 0 : views.length - 1) : (now + by + views.length) % views.length];
    t.selected = -1;
    TA.panel(t, -1);
    t.open(view);
    t.say(`Finding ${view.finding + 1}, ${t.name(view.finding)}, evidence ${view.evidence + 1}: at ${TA.moment(view.at)}, ${TA.length(view.dur)} long.`);
    if (t.found) t.found(view);
  };
  // arrows go from finding to finding; with a row selected, from row to row
  const sideways = (by) => (t.selected >= 0 || !model.views.length ? move(by, 0) : t.step(by));

  const focus = () => {
    if (t.selected >= 0) { const r = model.row(t.selected); t.show(r.start - r.dur, r.end + r.dur); } else if (t.active) t.open(t.active);
  };
  const clear = () => {
    if (t.selected >= 0) t.select(-1);
    else if (t.chosen) { t.search?.clear(); TA.light(null); } else { t.active = null; t.draw(); chart.blur(); }
  };
  t.actions = {
    in: () => t.zoom(0.5), out: () => t.zoom(2), left: () => t.pan(-0.25), right: () => t.pan(0.25), reset: t.reset, next: () => t.step(1), previous: () => t.step(-1),
    lanes: () => { t.everyLane = !t.everyLane; layout(); },
  };
  const keys = {
    w: () => t.zoom(1 / 1.4, t.pointer), s: () => t.zoom(1.4, t.pointer), a: () => t.pan(-0.12), d: () => t.pan(0.12), "+": t.actions.in, "=": t.actions.in, "-": t.actions.out,
    _: t.actions.out, 0: t.reset, Home: t.reset, n: () => t.step(1), p: () => t.step(-1), f: focus, Escape: clear, "/": () => t.search?.open(),
    ArrowLeft: () => sideways(-1), ArrowRight: () => sideways(1), ArrowUp: () => move(0, -1), ArrowDown: () => move(0, 1),
    ".": () => move(1, 0), ",": () => move(-1, 0), Enter: () => (t.selected >= 0 ? focus() : move(0, 0)),
  };
  t.key = (event) => {
    const act = !event.ctrlKey && !event.metaKey && !event.altKey && keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    act();
    event.preventDefault();
  };
  chart.addEventListener("keydown", (event) => { if (event.target === chart) t.key(event); });

  TA.gestures(t, {under, hover, rest});
  for (const button of root.querySelectorAll("[data-do]")) button.addEventListener("click", () => t.actions[button.dataset.do]?.());
  if (!model.views.length) root.querySelectorAll('[data-do="next"], [data-do="previous"]').forEach((b) => b.remove());
  TA.overview(t);
  TA.pins(t);
  t.layout = layout;
  layout();
  let before = innerHeight;
  new ResizeObserver(() => {
    if (chart.clientWidth > 0 && (Math.abs(chart.clientWidth - t.width) > 1 || innerHeight !== before)) { before = innerHeight; layout(); }
  }).observe(chart);
  addEventListener("resize", () => { if (innerHeight !== before) { before = innerHeight; layout(); } });
  TA.redraws.push(t.draw);
  return t;
};

// Numbers of findings over their first evidence, each at a place of its own, linked to the finding.
TA.pins = (t) => {
  const {views} = t.model;
  const pins = views.filter((v, i) => views.findIndex((o) => o.finding === v.finding) === i).map((v) => {
    const pin = TA.element("a", "pin", String(v.finding + 1));
    pin.href = `#finding-${v.finding + 1}`;
    pin.title = pin.ariaLabel = `Finding ${v.finding + 1}: ${t.name(v.finding)}`;
    t.chart.append(pin);
    return [pin, v];
  }).sort((a, b) => a[1].at - b[1].at);
  const WIDE = 20;
  t.follow(() => {
    let last = -Infinity;
    for (const [pin, v] of pins) {
      const seen = v.at + v.dur >= t.from && v.at <= t.to;
      pin.style.display = seen ? "block" : "none";
      if (!seen) continue;
      last = Math.max(last + WIDE, t.gutter + 2, Math.min(t.x(v.at + v.dur / 2) - WIDE / 2, t.width - WIDE));
      pin.style.left = `${last}px`;
    }
  });
};
