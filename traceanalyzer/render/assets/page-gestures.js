// Mouse, pen and fingers on a timeline: drag pans, two fingers pinch, Shift and drag zooms into a stretch, the wheel zooms while the
// chart has the focus (else it scrolls the page, so that nobody is trapped in the chart), a double click shows everything or comes closer.
TA.gestures = (t, {under, hover, rest}) => {
  const {chart} = t, box = TA.element("div", "stretch");
  chart.append(box);
  const down = new Map();
  let begun = null, pinch = null;
  const place = (event) => event.clientX - chart.getBoundingClientRect().left - chart.clientLeft;
  const on = (event) => !event.target.closest("a, button");

  chart.addEventListener("pointerdown", (event) => {
    if (!on(event) || (event.pointerType === "mouse" && event.button !== 0)) return;
    chart.focus({preventScroll: true});
    down.set(event.pointerId, place(event));
    if (down.size === 1) begun = {x: place(event), from: t.from, to: t.to, far: false, stretch: event.shiftKey};
    if (down.size === 2) {
      const [a, b] = [...down.values()];
      pinch = {apart: Math.max(10, Math.abs(a - b)), at: t.at((a + b) / 2), wide: t.to - t.from};
      begun.far = true;
    }
    try { chart.setPointerCapture(event.pointerId); } catch { /* a pointer made by a script */ }
  });
  chart.addEventListener("pointermove", (event) => {
    t.pointer = place(event) >= t.gutter ? t.at(place(event)) : undefined;
    if (!down.has(event.pointerId)) return void (event.pointerType !== "touch" && on(event) && hover(event));
    down.set(event.pointerId, place(event));
    if (pinch && down.size >= 2) {
      const [a, b] = [...down.values()], wide = pinch.wide * (pinch.apart / Math.max(10, Math.abs(a - b)));
      const share = ((a + b) / 2 - t.gutter) / (t.width - t.gutter);
      return void t.show(pinch.at - wide * share, pinch.at + wide * (1 - share));
    }
    const by = place(event) - begun.x;
    begun.far = begun.far || Math.abs(by) > 4;
    if (!begun.far) return;
    if (begun.stretch) {
      const left = Math.max(t.gutter, Math.min(begun.x, begun.x + by));
      box.style.display = "block";
      box.style.left = `${left}px`;
      box.style.width = `${Math.abs(by)}px`;
    } else {
      const ns = (by / (t.width - t.gutter)) * (begun.to - begun.from);
      t.show(begun.from - ns, begun.to - ns);
    }
  });
  const up = (event) => {
    if (!down.delete(event.pointerId)) return;
    if (down.size) { const [x] = down.values(); begun = {x, from: t.from, to: t.to, far: true}; pinch = null; return; }
    const was = begun;
    box.style.display = "none";
    pinch = begun = null;
    if (event.type === "pointercancel" || !was) return;
    if (was.far && was.stretch) {
      const ends = [was.x, place(event)].map(t.at).sort((a, b) => a - b);
      t.show(ends[0], ends[1]);
    } else if (!was.far) {
      const {row} = under(event);
      if (row >= 0 || t.selected >= 0) t.select(row, {move: false});
    }
  };
  chart.addEventListener("pointerup", up);
  chart.addEventListener("pointercancel", up);
  chart.addEventListener("pointerleave", () => { t.pointer = undefined; if (t.hovered >= 0) { t.hovered = -1; t.draw(); } rest(); });
  chart.addEventListener("dblclick", (event) => {
    if (!on(event)) return;
    if (t.whole()) t.zoom(0.25, t.at(place(event)));
    else t.reset();
  });
  chart.addEventListener("wheel", (event) => {
    const focused = chart.contains(document.activeElement);
    const zooms = event.ctrlKey || event.metaKey || (focused && !event.shiftKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX));
    if (zooms) t.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * (event.ctrlKey && Math.abs(event.deltaY) < 40 ? 0.01 : 0.0025)), t.at(Math.max(t.gutter, place(event))));
    else if (event.shiftKey || focused) t.pan(Math.max(-0.2, Math.min(0.2, (event.deltaX || event.deltaY) * 0.0015)));
    else return;
    event.preventDefault();
  }, {passive: false});
};

// The strip over a timeline: the whole trace, drawn by the page itself. Drag in it to choose a stretch, or move the one in sight.
TA.overview = (t) => {
  const strip = t.part("overview");
  if (!strip) return;
  const {begin, end} = t.model, box = TA.element("div", "box");
  strip.append(box);
  let from = null;
  const at = (event) => begin + ((event.clientX - strip.getBoundingClientRect().left) / strip.clientWidth) * (end - begin);
  strip.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const ns = at(event), inside = ns >= t.from && ns <= t.to && !t.whole();
    from = {ns, inside, a: t.from, b: t.to, far: false, x: event.clientX};
    try { strip.setPointerCapture(event.pointerId); } catch { /* a pointer made by a script */ }
  });
  strip.addEventListener("pointermove", (event) => {
    if (!from) return;
    from.far = from.far || Math.abs(event.clientX - from.x) > 3;
    if (!from.far) return;
    if (from.inside) t.show(from.a + at(event) - from.ns, from.b + at(event) - from.ns);
    else t.show(Math.min(from.ns, at(event)), Math.max(from.ns, at(event)));
  });
  strip.addEventListener("pointerup", () => {
    if (from && !from.far && !from.inside) { const half = (t.to - t.from) / 2; t.show(from.ns - half, from.ns + half); }
    from = null;
  });
  strip.addEventListener("pointercancel", () => { from = null; });
  strip.addEventListener("dblclick", t.reset);
  t.follow((a, b) => {
    box.style.left = `${(100 * (a - begin)) / (end - begin)}%`;
    box.style.width = `${(100 * (b - a)) / (end - begin)}%`;
  });
};
