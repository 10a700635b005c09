// Shared by all charts: colours of the page, numbers, and a uPlot chart that zooms by mouse, keys and buttons.
const TA = {charts: [], data: {}, views: {}};

TA.colour = (() => {
  let known = {};
  const forget = () => { known = {}; TA.charts.forEach((c) => c.redraw(false, true)); };
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", forget);
  return (name) => known[name] || (known[name] = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
})();

// left of every chart over time, so that one moment stands at one place in all of them
TA.GUTTER = 42;

TA.kernelColour = (place) => TA.colour(place >= 0 && place < 8 ? "c" + place : "quiet");

// microseconds with as many digits as the report's tables show; finer ones where a step asks for them
TA.us = (value, step) => {
  const size = Math.abs(value);
  let digits = size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0;
  if (step !== undefined) digits = Math.max(0, Math.min(3, Math.ceil(-Math.log10(step) - 1e-9)));
  return value.toLocaleString("en-US", {minimumFractionDigits: step === undefined ? digits : 0, maximumFractionDigits: digits, roundingMode: "halfEven"});
};

TA.sums = (differences) => {
  const out = new Float64Array(differences.length);
  let at = 0;
  for (let i = 0; i < differences.length; i++) out[i] = (at += differences[i]);
  return out;
};

TA.element = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

TA.font = (size) => `${Math.round(size * devicePixelRatio)}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;

// Places of ticks on a logarithmic axis: round numbers that stand well apart, even where the axis spans less than a decade.
TA.logSplits = (u, axis, min, max) => {
  const most = Math.max(2, Math.floor(u.bbox.width / devicePixelRatio / 80));
  const decades = Math.log10(max / min);
  const out = [];
  if (decades > 1) {
    const steps = decades * 3 <= most ? [1, 2, 5] : decades * 2 <= most ? [1, 3] : [1];
    const every = Math.max(1, Math.ceil(decades / most));
    for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++) {
      if (power % every === 0) for (const step of steps) out.push(step * 10 ** power);
    }
  } else {
    const wide = (max - min) / Math.min(most, 12), ten = 10 ** Math.floor(Math.log10(wide));
    const step = ten * [1, 2, 5, 10].find((s) => s * ten >= wide);
    for (let k = Math.ceil(min / step); k * step <= max; k++) out.push(k * step);
  }
  // near the small end of a wide axis linear steps crowd
  const apart = Math.log(max / min) / most / 1.4;
  return out.filter((v) => v >= min && v <= max).filter((v, i, all) => i === 0 || Math.log(v / all[i - 1]) > apart || all.length < 4);
};

TA.axes = (label, extra, log) => {
  const shared = {
    stroke: () => TA.colour("muted"), grid: {stroke: () => TA.colour("line"), width: 1}, ticks: {stroke: () => TA.colour("line"), width: 1},
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
  };
  const x = {...shared, label, labelSize: 18, size: 30, space: 70,
    values: (u, splits, axis, space, step) => splits.map((v) => (v === null ? null : log ? String(Number(v.toPrecision(4))) : TA.us(v, step))),
    ...(log ? {splits: TA.logSplits, filter: (u, splits) => splits} : {})};
  return [x, {...shared, ...extra}];
};

// A chart over [low, high]. `draw` paints on the canvas; `moved` is told the new range; `hover` the position under the pointer.
TA.chart = (host, {low, high, height, axes, log, draw, moved, hover, cursor, series, data, highest, hooks, padding}) => {
  let sight = [low, high];
  const options = {
    width: Math.max(200, host.clientWidth), height, legend: {show: false}, pxAlign: 1,
    scales: {
      // the y axis is set while the new range of x is not yet in u.scales, so it is handed over
      x: {time: false, distr: log ? 3 : 1, range: (u, min, max) => (sight = [min ?? low, max ?? high])},
      y: {range: highest ? () => [0, highest(sight[0], sight[1])] : [0, 1]},
    },
    axes, series: series || [{}, {show: true, paths: () => null, points: {show: false}}],
    cursor: {y: false, points: {show: false}, drag: {x: true, y: false, dist: 4}, ...cursor},
    padding: [6, 12, 0, padding ?? 6],
    hooks: {
      draw: draw ? [draw] : [], setScale: [(u, key) => { if (key === "x" && moved) moved(u.scales.x.min, u.scales.x.max); }],
      setCursor: hover ? [hover] : [], ...hooks,
    },
  };
  const chart = new uPlot(options, data || [[low, high], [null, null]], host);
  const least = log ? 1.0002 : Math.max(1e-9, Math.min(0.05, (high - low) / 10));
  const forward = (v) => (log ? Math.log(v) : v), back = (v) => (log ? Math.exp(v) : v);
  const show = (min, max) => {
    let from = forward(min), to = forward(max);
    const first = forward(low), last = forward(high), narrow = log ? Math.log(least) : least;
    if (to - from < narrow) { const middle = (from + to) / 2; from = middle - narrow / 2; to = middle + narrow / 2; }
    if (to - from >= last - first) { from = first; to = last; }
    if (from < first) { to += first - from; from = first; }
    if (to > last) { from -= to - last; to = last; }
    chart.setScale("x", {min: back(from), max: back(to)});
  };
  // uPlot sets the first range a moment after it is made
  const range = () => [chart.scales.x.min ?? low, chart.scales.x.max ?? high];
  const zoom = (factor, at) => {
    const [min, max] = range().map(forward);
    const middle = at === undefined ? (min + max) / 2 : forward(at);
    show(back(middle - (middle - min) * factor), back(middle + (max - middle) * factor));
  };
  const pan = (share) => {
    const [min, max] = range().map(forward);
    show(back(min + (max - min) * share), back(max + (max - min) * share));
  };
  const actions = {in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.3), right: () => pan(0.3), reset: () => show(low, high)};
  const keys = {"+": "in", "=": "in", "-": "out", "_": "out", ArrowLeft: "left", ArrowRight: "right", "0": "reset", Home: "reset", w: "in", s: "out", a: "left", d: "right"};
  host.addEventListener("keydown", (event) => {
    const action = actions[keys[event.key]] || actions[event.key];
    if (action && !event.ctrlKey && !event.metaKey && !event.altKey) { action(); event.preventDefault(); }
  });
  // a plain wheel scrolls the page: taking it would trap the reader in the chart
  host.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.3 : 1 / 1.3, chart.posToVal(event.clientX - chart.over.getBoundingClientRect().left, "x"));
    else if (event.shiftKey) pan((event.deltaY || event.deltaX) > 0 ? 0.15 : -0.15);
    else return;
    event.preventDefault();
  }, {passive: false});
  new ResizeObserver(() => {
    if (host.clientWidth > 0 && Math.abs(host.clientWidth - chart.width) > 1) chart.setSize({width: host.clientWidth, height: chart.height});
  }).observe(host);
  TA.charts.push(chart);
  const made = {chart, show, range, zoom, pan, actions, host};
  return made;
};

// Buttons of a chart: [data-tools=NAME] holds buttons with data-do=ACTION.
TA.tools = (name, made) => {
  for (const button of document.querySelectorAll(`[data-tools="${name}"] button[data-do]`)) {
    button.addEventListener("click", () => made().actions[button.dataset.do]?.());
  }
};
