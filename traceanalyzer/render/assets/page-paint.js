// Paints a timeline: bars of every lane, busy shares where rows were left out, arrows from launch to kernel, queue depth.
TA.GUTTER = () => (innerWidth < 640 ? 84 : 136);
TA.AXIS = 20;
TA.PINS = 18;
TA.ARROWS = 400;

TA.paint = (t, context, width, height, ratio) => {
  const {model, from, to} = t, left = t.gutter, room = width - left;
  const scale = room / (to - from), x = (ns) => left + (ns - from) * scale;
  const font = (size) => `${size}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(left, 0, room, height);
  context.clip();
  context.font = font(11);
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const [tick, text] of TA.ticks(from - t.zero, to - t.zero, room / 110)) {
    const place = x(tick + t.zero);
    context.fillStyle = TA.colour("line");
    context.fillRect(Math.round(place), 0, 1, height);
    // a label that would be cut at the right edge is left out: the next zoom shows it
    if (place + 4 + context.measureText(text).width > width) continue;
    context.fillStyle = TA.colour("muted");
    context.fillText(text, place + 4, TA.AXIS / 2);
  }
  if (t.active) {
    context.fillStyle = TA.colour("band");
    context.fillRect(x(t.active.at), TA.AXIS, Math.max(2, t.active.dur * scale), height);
  }
  for (const lane of t.shown) {
    context.fillStyle = TA.colour("line");
    context.fillRect(left, lane.y + lane.h + 1, room, 1);
    if (lane.kind === "depth") { TA.paintDepth(t, context, lane, x, left, width); continue; }
    if (!model.whole) TA.paintShares(t, context, lane, x);
    if (t.chosen) {
      context.globalAlpha = 0.22;
      TA.paintRows(t, context, lane, x, left, width, font, (i) => !t.chosen(lane, i));
      context.globalAlpha = 1;
    }
    TA.paintRows(t, context, lane, x, left, width, font, t.chosen ? (i) => t.chosen(lane, i) : null);
  }
  t.arrows = TA.paintArrows(t, context, x, left, width);
  context.restore();
};

TA.paintRows = (t, context, lane, x, low, width, font, wanted) => {
  const {model, from, to} = t, [a, b] = model.visible(lane, from, to);
  const colours = {host: TA.colour("host"), call: TA.colour("call"), wait: TA.colour("wait"), copy: TA.colour("copy"), other: TA.colour("quiet"), range: TA.colour("range")};
  const ranges = lane.kind === "ranges", high = ranges ? lane.h / 2 : lane.h;
  const edges = [-Infinity, -Infinity];
  context.font = font(high < 12 ? 8.5 : 10.5);
  context.textBaseline = "middle";
  for (let i = a; i < b; i++) {
    if (wanted && !wanted(i)) continue;
    const start = Math.max(low - 2, x(lane.start[i])), end = Math.min(width + 2, x(lane.start[i] + lane.dur[i]));
    if (end < low - 1) continue;
    const wide = Math.max(1, end - start), deep = ranges ? lane.tag[i] : 0;
    if (wide <= 1 && start + wide <= edges[deep] + 0.3) continue;
    edges[deep] = Math.max(edges[deep], start + wide);
    const y = lane.y + deep * high;
    context.fillStyle = lane.kind === "stream" ? (lane.tag[i] & 4 ? colours.copy : TA.kernelColour(lane.name[i]))
      : lane.kind === "calls" ? (lane.tag[i] === 1 ? colours.wait : lane.tag[i] === 0 ? colours.call : colours.other)
        : ranges ? colours.range : colours.host;
    context.fillRect(start, y, wide - (wide > 3 ? 0.5 : 0), high - (ranges ? 1 : 0));
    if (lane.kind === "stream" && lane.tag[i] & 1) {
      context.fillStyle = TA.colour("starved");
      context.fillRect(start, y, Math.min(wide, 2), high);
    }
    if (wide > 34 && high >= 9) {
      context.fillStyle = TA.colour(ranges ? "fg" : "on-bar");
      const fits = Math.floor((wide - 8) / (high < 12 ? 4.8 : 5.9)), name = t.model.names[lane.name[i]];
      const begin = Math.max(start, low) + 4;
      context.fillText(name.length <= fits ? name : name.slice(0, Math.max(1, fits - 1)) + "\u2026", begin, y + high / 2 + 0.5);
    }
  }
};

// the share of time a lane was busy, where its rows are not in this page
TA.paintShares = (t, context, lane, x) => {
  const {model, from, to} = t, wide = (model.end - model.begin) / lane.busy.length;
  const a = Math.max(0, Math.floor((from - model.begin) / wide)), b = Math.min(lane.busy.length, Math.ceil((to - model.begin) / wide));
  context.fillStyle = TA.colour("quiet");
  for (let i = a; i < b; i++) {
    if (!lane.busy[i]) continue;
    const middle = model.begin + (i + 0.5) * wide;
    if (model.found.windows.some((w) => middle >= w[0] && middle <= w[1])) continue;
    const high = Math.max(1, (lane.h * lane.busy[i]) / 1000), left = x(model.begin + i * wide);
    context.fillRect(left, lane.y + lane.h - high, Math.max(1, x(model.begin + (i + 1) * wide) - left), high);
  }
};

TA.paintDepth = (t, context, lane, x, low, width) => {
  const a = Math.max(0, TA.lower(lane.at, t.from) - 1), b = TA.lower(lane.at, t.to);
  let most = 1;
  for (let i = a; i < b; i++) most = Math.max(most, lane.depth[i]);
  lane.most = most;
  context.fillStyle = TA.colour("depth");
  let column = -1, highest = 0;
  const flush = () => { if (column >= 0 && highest) context.fillRect(column, lane.y + lane.h * (1 - highest / most), 1, lane.h * (highest / most)); };
  for (let i = a; i < b; i++) {
    const start = Math.max(low, x(lane.at[i])), end = Math.min(width, i + 1 < lane.at.length ? x(lane.at[i + 1]) : start + 1);
    if (end - start < 1) {
      if (Math.floor(start) !== column) { flush(); column = Math.floor(start); highest = 0; }
      highest = Math.max(highest, lane.depth[i]);
    } else if (lane.depth[i]) context.fillRect(start, lane.y + lane.h * (1 - lane.depth[i] / most), end - start, lane.h * (lane.depth[i] / most));
  }
  flush();
  context.fillStyle = TA.colour("starved");
  let last = -9;
  for (let i = TA.lower(lane.starved, t.from); i < lane.starved.length && lane.starved[i] <= t.to; i++) {
    const at = x(lane.starved[i]);
    if (at - last < 1) continue;
    last = at;
    context.fillRect(at - 0.5, lane.y + lane.h - 3, 1.5, 3);
  }
};

// Returns whether arrows are drawn: among very many none can be followed.
TA.paintArrows = (t, context, x, low, width) => {
  const {model, from, to} = t, seen = [];
  for (const lane of t.shown) {
    if (lane.kind !== "stream") continue;
    const [a, b] = model.visible(lane, from, to);
    for (let i = a; i < b && seen.length <= TA.ARROWS; i++) {
      if (lane.link[i] >= 0 && model.children.get(lane.link[i]) === lane.first + i) seen.push([lane, i]);
    }
  }
  if (seen.length > TA.ARROWS) return false;
  context.lineWidth = 1;
  for (const [lane, i] of seen) {
    const call = model.row(lane.link[i]), number = lane.first + i;
    if (call.lane.y === undefined) continue;
    const x0 = x(call.end), x1 = x(lane.start[i]), y0 = call.lane.y + call.lane.h, y1 = lane.y;
    const marked = [number, call.number].some((n) => n === t.hovered || n === t.selected);
    context.strokeStyle = context.fillStyle = TA.colour(lane.tag[i] & 1 ? "starved" : "call");
    context.globalAlpha = marked ? 1 : t.hovered >= 0 || t.chosen ? 0.15 : 0.5;
    context.beginPath();
    if (x0 >= low && x0 <= width) {
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
    } else {
      // a launch out of sight: a stub that leans towards it, not a line across everything
      context.moveTo(x1 + (x0 < x1 ? -9 : 9), y1 - 9);
      context.lineTo(x1, y1);
    }
    context.stroke();
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 2.5, y1 - 4);
    context.lineTo(x1 + 2.5, y1 - 4);
    context.fill();
  }
  context.globalAlpha = 1;
  return true;
};
