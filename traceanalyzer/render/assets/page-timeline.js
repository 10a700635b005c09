// The timeline: lanes of host rows and streams, arrows from launch to kernel, an overview to move in.
TA.timeline = (found) => {
  const LANE = 40, LABEL = 14, ARROWS = 400;
  const begin = found.begin;
  const us = (ns) => ns / 1000;
  const lanes = found.lanes.map((l) => ({...l, start: TA.sums(l.start)}));
  let first = 0;
  for (const lane of lanes) {
    lane.first = first;
    first += lane.start.length;
    // rows may overlap: the latest end so far says how far back one must look
    lane.reach = new Float64Array(lane.start.length);
    let latest = -Infinity;
    for (let i = 0; i < lane.start.length; i++) lane.reach[i] = latest = Math.max(latest, lane.start[i] + lane.dur[i]);
  }
  const laneOf = (row) => { let i = lanes.length - 1; while (lanes[i].first > row) i--; return i; };
  const children = new Map();
  lanes.forEach((lane) => lane.link.forEach((call, i) => { if (call >= 0 && !children.has(call)) children.set(call, lane.first + i); }));
  const views = found.views.flatMap((part, f) => part.map((v, e) => ({finding: f, evidence: e, from: v[0], to: v[1], at: v[2], dur: v[3]})));
  const whole = found.windows.length === 1 && found.windows[0][0] <= begin && found.windows[0][1] >= found.end;
  let active = null, hovered = -1;

  const lower = (array, value) => { let a = 0, b = array.length; while (a < b) { const m = (a + b) >> 1; if (array[m] < value) a = m + 1; else b = m; } return a; };
  // rows of a lane that touch [from, to], both in ns
  const visible = (lane, from, to) => [lower(lane.reach, from), lower(lane.start, to)];
  const top = (place, ratio) => (place * LANE + LABEL) * ratio;

  const colourOf = (lane, i) => {
    if (lane.kind === "stream") return lane.tag[i] & 4 ? TA.colour("quiet") : TA.kernelColour(lane.name[i]);
    if (lane.kind === "calls") return TA.colour(lane.tag[i] === 1 ? "sync" : lane.tag[i] === 0 ? "host" : "line");
    return TA.colour("line");
  };

  const draw = (u) => {
    const context = u.ctx, ratio = devicePixelRatio, box = u.bbox;
    const from = u.scales.x.min * 1000, to = u.scales.x.max * 1000;
    const x = (ns) => box.left + ((ns - from) / (to - from)) * box.width;
    context.save();
    context.textAlign = "left";
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
    const place = (index) => box.top + top(index, ratio);
    const bar = (LANE - LABEL - 8) * ratio;
    if (active) {
      context.fillStyle = TA.colour("band");
      const left = x(active.at), width = Math.max(2 * ratio, x(active.at + active.dur) - left);
      context.fillRect(left, box.top, width, box.height);
    }
    lanes.forEach((lane, index) => {
      const y = place(index);
      context.fillStyle = TA.colour("line");
      context.fillRect(box.left, y + bar + 5 * ratio, box.width, 1);
      if (!whole) bins(context, u, lane, y, bar, x, from, to, ratio);
      const [a, b] = visible(lane, from, to);
      let drawn = -Infinity;
      context.font = TA.font(lane.kind === "ranges" ? 8.5 : 10.5);
      context.textBaseline = "middle";
      for (let i = a; i < b; i++) {
        if (lane.start[i] + lane.dur[i] < from) continue;
        const left = x(lane.start[i]), right = x(lane.start[i] + lane.dur[i]);
        const width = Math.max(ratio, right - left);
        if (left + width <= drawn + 0.3 * ratio && width <= ratio) continue;
        drawn = Math.max(drawn, left + width);
        const deep = lane.kind === "ranges" ? lane.tag[i] * 0.5 : 0;
        const half = lane.kind === "ranges" ? 0.5 : 1;
        context.fillStyle = colourOf(lane, i);
        context.fillRect(left, y + deep * bar, width - (width > 4 * ratio ? 0.5 * ratio : 0), bar * half - (half < 1 ? ratio : 0));
        if (lane.kind === "stream" && lane.tag[i] & 1) {
          context.fillStyle = TA.colour("starved");
          context.fillRect(left, y, Math.min(width, 2 * ratio), bar);
        }
        const seen = Math.min(right, box.left + box.width) - Math.max(left, box.left);
        if (seen > 34 * ratio && half * bar > 7 * ratio) {
          const light = lane.kind === "stream" || lane.tag[i] === 1;
          context.fillStyle = light && !(lane.kind === "ranges") ? TA.colour("bg") : TA.colour("fg");
          const room = Math.floor((seen - 6 * ratio) / (5.6 * ratio));
          const name = found.names[lane.name[i]];
          const text = name.length <= room ? name : name.slice(0, Math.max(1, room - 1)) + "\u2026";
          context.fillText(text, Math.max(left, box.left) + 3 * ratio, y + deep * bar + (bar * half) / 2);
        }
      }
    });
    arrows(context, x, from, to, place, bar, ratio, box);
    context.font = TA.font(11);
    context.textBaseline = "alphabetic";
    lanes.forEach((lane, index) => {
      const text = lane.label + (lane.kind === "stream" || lane.kind === "calls" ? ` (${lane.total.toLocaleString("en-US")})` : "");
      const y = place(index) - 3 * ratio;
      context.fillStyle = TA.colour("bg");
      context.globalAlpha = 0.75;
      context.fillRect(box.left, y - 9 * ratio, context.measureText(text).width + 6 * ratio, 12 * ratio);
      context.globalAlpha = 1;
      context.fillStyle = TA.colour("muted");
      context.fillText(text, box.left + 3 * ratio, y);
    });
    context.restore();
  };

  // the share of time a lane was busy, where its rows are not in this page
  const bins = (context, u, lane, y, bar, x, from, to, ratio) => {
    const width = (found.end - begin) / lane.busy.length;
    const a = Math.max(0, Math.floor((from - begin) / width)), b = Math.min(lane.busy.length, Math.ceil((to - begin) / width));
    context.fillStyle = TA.colour("quiet");
    for (let i = a; i < b; i++) {
      if (!lane.busy[i]) continue;
      const middle = begin + (i + 0.5) * width;
      if (found.windows.some((w) => middle >= w[0] && middle <= w[1])) continue;
      const height = Math.max(ratio, (bar * lane.busy[i]) / 1000);
      context.fillRect(x(begin + i * width), y + bar - height, Math.max(ratio, x(begin + (i + 1) * width) - x(begin + i * width)), height);
    }
  };

  const arrows = (context, x, from, to, place, bar, ratio, box) => {
    const seen = [];
    lanes.forEach((lane, index) => {
      if (lane.kind !== "stream" || seen.length > ARROWS) return;
      const [a, b] = visible(lane, from, to);
      for (let i = a; i < b && seen.length <= ARROWS; i++) {
        if (lane.link[i] >= 0 && children.get(lane.link[i]) === lane.first + i) seen.push([lane, index, i]);
      }
    });
    if (seen.length > ARROWS) return void (draw.arrows = false);
    draw.arrows = true;
    context.lineWidth = ratio;
    for (const [lane, index, i] of seen) {
      const host = laneOf(lane.link[i]), call = lane.link[i] - lanes[host].first;
      const x0 = x(lanes[host].start[call] + lanes[host].dur[call]), x1 = x(lane.start[i]);
      const y0 = place(host) + bar, y1 = place(index);
      const starved = lane.tag[i] & 1;
      context.strokeStyle = context.fillStyle = TA.colour(starved ? "starved" : "host");
      context.globalAlpha = hovered < 0 || hovered === lane.first + i || hovered === lane.link[i] ? 0.85 : 0.25;
      context.beginPath();
      if (x0 >= box.left && x0 <= box.left + box.width) {
        context.moveTo(x0, y0);
        context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
      } else {
        // a launch out of sight: a stub that leans towards it, not a line across everything
        context.moveTo(x1 + (x0 < x1 ? -9 : 9) * ratio, y1 - 13 * ratio);
        context.lineTo(x1, y1);
      }
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 3 * ratio, y1 - 5 * ratio);
      context.lineTo(x1 + 3 * ratio, y1 - 5 * ratio);
      context.fill();
    }
    context.globalAlpha = 1;
  };

  const host = document.getElementById("chart-timeline"), readout = document.getElementById("timeline-readout");
  const marks = [TA.element("div", "hl"), TA.element("div", "hl linked")];
  const outline = (mark, u, row) => {
    if (row < 0) return void (mark.style.display = "none");
    const index = laneOf(row), lane = lanes[index], i = row - lane.first;
    const left = u.valToPos(us(lane.start[i]), "x"), right = u.valToPos(us(lane.start[i] + lane.dur[i]), "x");
    const a = Math.max(-3, left), b = Math.min(u.over.clientWidth + 3, right);
    mark.style.display = b < a ? "none" : "block";
    mark.style.left = `${a - 2}px`;
    mark.style.width = `${Math.max(2, b - a) + 4}px`;
    mark.style.top = `${top(index, 1) - 2}px`;
    mark.style.height = `${LANE - LABEL - 8 + 4}px`;
  };
  const linkOf = (row) => {
    if (row < 0) return -1;
    const lane = lanes[laneOf(row)];
    return lane.kind === "stream" ? lane.link[row - lane.first] : children.get(row) ?? -1;
  };
  const describe = (row) => {
    const lane = lanes[laneOf(row)], i = row - lane.first;
    const what = {stream: lane.tag[i] & 4 ? "copy or fill" : "kernel", calls: ["launch", "synchronise", "call"][lane.tag[i]], operators: "operator", ranges: "range"}[lane.kind];
    return `${what} ${found.names[lane.name[i]]} at ${TA.us(us(lane.start[i]), 0.001)} us, ${TA.us(us(lane.dur[i]), 0.001)} us long (${lane.label})`;
  };
  const resting = () => {
    const [a, b] = made.range();
    const where = active ? `At the evidence of ${findingName(active.finding)}` : "Timeline";
    readout.textContent = `${where}: ${TA.us(a, 0.001)} to ${TA.us(b, 0.001)} us from the start of the trace (${TA.us(b - a)} us).`
      + (draw.arrows === false ? ` Arrows are drawn where up to ${ARROWS} are in sight: zoom in.` : "");
  };
  const findingName = (number) => {
    const title = document.querySelector(`#finding-${number} h3 a`) || document.querySelector(`#finding-${number} h3`);
    return title ? title.textContent.trim().split(/\s/)[0] : "a finding";
  };
  const hover = (u) => {
    const {left, top: y} = u.cursor;
    let row = -1;
    if (left >= 0 && y >= 0) {
      const index = Math.floor(y / LANE), lane = lanes[index];
      if (lane) {
        const at = u.posToVal(left, "x") * 1000, slack = ((u.scales.x.max - u.scales.x.min) * 1000 * 2) / u.over.clientWidth;
        const [a, b] = visible(lane, at - slack, at + slack);
        let best = Infinity;
        for (let i = Math.max(a, b - 2000); i < b; i++) {
          const away = Math.max(lane.start[i] - at, at - lane.start[i] - lane.dur[i], 0);
          if (away <= slack && (away < best || (away === best && lane.kind !== "stream"))) { best = away; row = lane.first + i; }
        }
      }
    }
    const linked = linkOf(row);
    outline(marks[0], u, row);
    outline(marks[1], u, linked);
    if (row >= 0) {
      const lane = lanes[laneOf(row)];
      let text = describe(row);
      if (linked >= 0) text += (lane.kind === "stream" ? "; launched by " : "; launches ") + describe(linked);
      if (lane.kind === "stream" && lane.tag[row - lane.first] & 1) text += "; met an empty stream";
      readout.textContent = text + ".";
    } else if (hovered >= 0) resting();
    if ((row >= 0) !== (hovered >= 0) || row !== hovered) { hovered = row; u.redraw(false, false); }
  };

  let made = null, moving = false;
  const listeners = [];
  made = TA.chart(host, {
    low: us(begin), high: us(found.end), height: lanes.length * LANE + 62, draw, hover, padding: TA.GUTTER,
    axes: TA.axes("us from the start of the trace", {show: false}),
    moved: (min, max) => {
      if (!made || moving) return;
      moving = true;
      listeners.forEach((l) => l(min, max));
      moving = false;
      requestAnimationFrame(resting);
    },
  });
  marks.forEach((m) => made.chart.over.append(m));
  const follow = (listener) => { listeners.push(listener); listener(...made.range()); };

  const open = (view) => { active = view; made.show(us(view.from), us(view.to)); made.chart.redraw(false, false); requestAnimationFrame(resting); };
  const step = (by) => {
    if (!views.length) return;
    const now = views.indexOf(active);
    open(views[now < 0 ? (by > 0 ? 0 : views.length - 1) : (now + by + views.length) % views.length]);
  };
  const reset = made.actions.reset;
  Object.assign(made.actions, {next: () => step(1), previous: () => step(-1), n: () => step(1), p: () => step(-1), reset: () => { active = null; reset(); }});
  TA.tools("timeline", () => made);
  if (!views.length) document.querySelectorAll('[data-do="next"], [data-do="previous"]').forEach((b) => b.remove());

  const jump = (event, view) => {
    event.preventDefault();
    open(view);
    document.getElementById("timeline").scrollIntoView({behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
    host.focus({preventScroll: true});
  };
  for (const link of document.querySelectorAll("a[data-view]")) {
    const [f, e] = link.dataset.view.split(".").map(Number);
    const view = views.find((v) => v.finding === f && v.evidence === e);
    if (view) link.addEventListener("click", (event) => jump(event, view));
  }
  for (const link of document.querySelectorAll("a[data-pause]")) {
    const [d, p] = link.dataset.pause.split(".").map(Number), v = (found.pauses[d] || [])[p];
    if (v) link.addEventListener("click", (event) => jump(event, {finding: -1, from: v[0], to: v[1], at: v[2], dur: v[3]}));
  }
  TA.overview({found, lanes, views, whole, made, follow});
  // pins: the number of a finding over its first evidence, linked to the finding
  const pins = views.filter((v, i) => views.findIndex((o) => o.finding === v.finding) === i).map((v) => {
    const pin = TA.element("a", "pin", String(v.finding + 1));
    pin.href = `#finding-${v.finding}`;
    pin.title = findingName(v.finding);
    made.chart.over.append(pin);
    return [pin, v];
  });
  follow((min, max) => pins.forEach(([pin, v]) => {
    const at = us(v.at);
    pin.style.display = at < min || at > max ? "none" : "block";
    pin.style.left = `${(100 * (at - min)) / (max - min)}%`;
  }));
  // the stretch in sight is in the address, so that it can be linked to; the whole trace needs none
  let waiting = 0;
  follow((min, max) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const everything = min <= us(begin) && max >= us(found.end);
      if (everything && !location.hash.startsWith("#t=")) return;
      try { history.replaceState(null, "", everything ? location.pathname : `#t=${min.toFixed(3)},${max.toFixed(3)}`); } catch { /* a page without an address */ }
    }, 400);
  });
  resting();
  return {made, follow, open, views};
};
