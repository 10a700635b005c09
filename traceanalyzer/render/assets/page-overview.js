// The whole trace in one strip: how busy host and device were, where rows are in this page, where evidence lies, what is shown.
TA.overview = ({found, lanes, views, whole, made, follow}) => {
  const begin = found.begin, end = found.end;
  const draw = (u) => {
    const context = u.ctx, ratio = devicePixelRatio, box = u.bbox, half = (box.height - 8 * ratio) / 2;
    const strip = (kind, top, colour) => {
      const chosen = lanes.filter((l) => l.kind === kind);
      if (!chosen.length) return;
      const n = chosen[0].busy.length;
      context.fillStyle = colour;
      for (let i = 0; i < n; i++) {
        const most = Math.max(...chosen.map((l) => l.busy[i]));
        if (most) context.fillRect(box.left + (i / n) * box.width, top + half - (half - ratio) * (most / 1000), Math.max(ratio, box.width / n), (half - ratio) * (most / 1000));
      }
    };
    strip("calls", box.top + 8 * ratio, TA.colour("host"));
    strip("stream", box.top + 8 * ratio + half, TA.colour("self"));
    const x = (ns) => box.left + ((ns - begin) / (end - begin)) * box.width;
    if (!whole) {
      context.fillStyle = TA.colour("accent");
      for (const [a, b] of found.windows) context.fillRect(x(a), box.top + box.height - 2 * ratio, Math.max(2 * ratio, x(b) - x(a)), 2 * ratio);
    }
    context.fillStyle = TA.colour("starved");
    for (const view of views) {
      const at = x(view.at);
      context.beginPath();
      context.moveTo(at - 4 * ratio, box.top);
      context.lineTo(at + 4 * ratio, box.top);
      context.lineTo(at, box.top + 7 * ratio);
      context.fill();
    }
  };
  const strip = TA.chart(document.getElementById("chart-overview"), {
    low: begin / 1000, high: end / 1000, height: 74, draw, padding: TA.GUTTER, axes: [{show: false}, {show: false}],
    cursor: {drag: {x: true, y: false, setScale: false, dist: 3}, bind: {dblclick: () => () => { made.actions.reset(); }}},
    hooks: {setSelect: [(u) => {
      if (u.select.width < 1) return;
      made.show(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
      u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
    }]},
  });
  const box = TA.element("div", "box");
  strip.chart.over.append(box);
  strip.chart.over.addEventListener("click", (event) => {
    const at = strip.chart.posToVal(event.offsetX, "x"), [a, b] = made.range();
    if (at < a || at > b) made.show(at - (b - a) / 2, at + (b - a) / 2);
  });
  let shown = [0, 1];
  const place = () => {
    const left = Math.max(0, strip.chart.valToPos(shown[0], "x")), right = Math.min(strip.chart.over.clientWidth, strip.chart.valToPos(shown[1], "x"));
    box.style.left = `${left}px`;
    box.style.width = `${Math.max(3, right - left)}px`;
  };
  follow((min, max) => { shown = [min, max]; place(); });
  new ResizeObserver(place).observe(strip.chart.over);
};
