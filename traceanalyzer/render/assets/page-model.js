// The rows of a timeline: found by place, by time and by link. Times are nanoseconds from the start of the trace.
TA.model = (found) => {
  const read = TA.unpack, sums = (text) => TA.sums(read(text));
  const lanes = found.lanes.map((l) => ({
    kind: l.kind, label: l.label, total: l.total, busy: read(l.busy), start: sums(l.start), dur: read(l.dur), name: read(l.name), tag: read(l.tag),
    link: Array.from(sums(l.link)), gaps: new Map(), gapAt: sums(l.gapAt), gap: read(l.gap), gapCause: read(l.gapCause),
  }));
  let first = 0;
  for (const lane of lanes) {
    lane.first = first;
    first += lane.start.length;
    // rows may overlap: the latest end so far says how far back one must look
    lane.reach = new Float64Array(lane.start.length);
    let latest = -Infinity;
    for (let i = 0; i < lane.start.length; i++) lane.reach[i] = latest = Math.max(latest, lane.start[i] + lane.dur[i]);
    lane.gapAt.forEach((i, n) => lane.gaps.set(i, [lane.gap[n], lane.gapCause[n]]));
  }
  for (const series of found.depth) {
    lanes.push({kind: "depth", label: `depth ${series.label.replace(/^stream /, "")}`, first, start: new Float64Array(0), dur: [], name: [], tag: [], link: [], reach: [], busy: [],
      at: sums(series.at), depth: read(series.depth), starved: sums(series.starved), total: series.starvedTotal, gaps: new Map()});
  }
  const laneOf = (row) => { let i = lanes.length - 1; while (lanes[i].first > row || !lanes[i].start.length) i--; return i; };
  const row = (number) => {
    const index = laneOf(number), lane = lanes[index], i = number - lane.first;
    return {number, index, lane, i, start: lane.start[i], dur: lane.dur[i], end: lane.start[i] + lane.dur[i], name: lane.name[i], tag: lane.tag[i]};
  };
  const children = new Map();
  lanes.forEach((lane) => lane.link.forEach((call, i) => { if (call >= 0 && !children.has(call)) children.set(call, lane.first + i); }));
  const linked = (number) => {
    if (number < 0) return -1;
    const {lane, i} = row(number);
    return lane.kind === "stream" ? lane.link[i] : children.get(number) ?? -1;
  };
  // rows of a lane that touch [from, to]
  const visible = (lane, from, to) => [TA.lower(lane.reach, from), TA.lower(lane.start, to)];
  const nearest = (lane, at, slack) => {
    const [a, b] = visible(lane, at - slack, at + slack);
    let best = Infinity, place = -1;
    for (let i = Math.max(a, b - 2000); i < b; i++) {
      const away = Math.max(lane.start[i] - at, at - lane.start[i] - lane.dur[i], 0);
      if (away <= slack && (away < best || (away === best && lane.kind !== "stream"))) { best = away; place = lane.first + i; }
    }
    return place;
  };
  // what a row is, in a word
  const kind = ({lane, tag}) => ({stream: tag & 4 ? "copy or fill" : "kernel", calls: ["launch", "synchronise", "call"][tag], operators: "operator", ranges: "range"})[lane.kind];
  const views = found.views.flatMap((part, f) => part.map((v, e) => ({finding: f, evidence: e, from: v[0], to: v[1], at: v[2], dur: v[3]})));
  const whole = found.windows.length === 1 && found.windows[0][0] <= found.begin && found.windows[0][1] >= found.end;
  return {found, lanes, begin: found.begin, end: found.end, rows: first, names: found.names, row, linked, children, visible, nearest, kind, views, whole};
};
