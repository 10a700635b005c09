// Queue depth over time, on the same stretch of time as the timeline.
TA.depth = (found, timeline, bounds) => {
  const host = document.getElementById("chart-depth"), readout = document.getElementById("depth-readout"), legend = document.getElementById("depth-legend");
  const series = [{}], tables = [];
  found.forEach((s, n) => {
    const at = Array.from(TA.sums(s.at), (v) => v / 1000);
    tables.push([[...at, bounds[1]], [...s.depth, s.depth[s.depth.length - 1]]]);
    const colour = "c" + (n % 8);
    series.push({label: s.label, stroke: () => TA.colour(colour), width: 1.5, paths: uPlot.paths.stepped({align: 1}), points: {show: false}, spanGaps: true});
    const item = TA.element("li", "", s.label);
    item.prepend(TA.element("span", "swatch " + colour));
    legend.append(item);
  });
  const starved = found.flatMap((s) => Array.from(TA.sums(s.starved), (v) => v / 1000)).sort((a, b) => a - b);
  const total = found.reduce((n, s) => n + s.starvedTotal, 0);
  if (starved.length) {
    const once = starved.filter((v, i) => i === 0 || v !== starved[i - 1]);
    tables.push([once, once.map(() => 0)]);
    series.push({label: "starved", stroke: () => TA.colour("starved"), paths: () => null,
      points: {show: true, size: 6, width: 1, stroke: () => TA.colour("starved"), fill: () => TA.colour("starved"), space: 0}});
    const item = TA.element("li", "", `launches that met an empty stream (${total.toLocaleString("en-US")})`);
    item.prepend(TA.element("span", "swatch s-starved"));
    legend.append(item);
  }
  // the highest depth in sight sets the axis, so that a shallow stretch of a deep trace stays legible
  const place = (at, value) => { let a = 0, b = at.length; while (a < b) { const m = (a + b) >> 1; if (at[m] <= value) a = m + 1; else b = m; } return a; };
  const highest = (from, to) => {
    let most = 1;
    for (const [at, depth] of tables.slice(0, found.length)) {
      const last = place(at, to);
      for (let i = Math.max(0, place(at, from) - 1); i < last; i++) most = Math.max(most, depth[i]);
    }
    return most * 1.08;
  };
  let made = null, moving = false;
  made = TA.chart(host, {
    low: bounds[0], high: bounds[1], height: 190, series, padding: 0, data: uPlot.join(tables),
    highest,
    axes: TA.axes("us from the start of the trace", {size: TA.GUTTER, values: (u, splits) => splits.map((v) => (v >= 10000 ? `${v / 1000}k` : v.toLocaleString("en-US"))), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000]}),
    moved: (min, max) => {
      if (!made || moving || !timeline) return;
      moving = true;
      timeline.made.show(min, max);
      moving = false;
    },
    hover: (u) => {
      if (u.cursor.left < 0) return;
      const at = u.posToVal(u.cursor.left, "x");
      readout.textContent = `At ${TA.us(at, 0.001)} us: ` + found.map((s, n) => {
        const a = place(tables[n][0], at);
        return `${s.label} ${a ? tables[n][1][a - 1] : 0} queued`;
      }).join(", ");
    },
  });
  if (timeline) {
    timeline.follow((min, max) => { if (!moving) { moving = true; made.show(min, max); moving = false; } });
    for (const name of ["n", "p"]) made.actions[name] = () => timeline.made.actions[name]();
  }
};
