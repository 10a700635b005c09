// Ratios of two runs with their intervals, one line each, on a logarithmic axis around 1.
TA.ratios = (id, rows) => {
  const ROW = 36, host = document.getElementById(id);
  const ends = rows.flatMap((r) => [r.ratio, r.low, r.high]).filter((v) => typeof v === "number" && v > 0).concat([0.97, 1.03]);
  const colours = {FASTER: "ok", SLOWER: "bad", SAME: "muted", UNDECIDED: "warn", head: "ok", base: "bad", tie: "muted"};
  const draw = (u) => {
    const context = u.ctx, ratio = devicePixelRatio, box = u.bbox, height = box.height / rows.length;
    const x = (v) => u.valToPos(v, "x", true);
    context.save();
    context.textAlign = "left";
    context.fillStyle = TA.colour("line");
    context.globalAlpha = 0.6;
    context.fillRect(x(0.99), box.top, x(1.01) - x(0.99), box.height);
    context.globalAlpha = 1;
    context.fillStyle = TA.colour("fg");
    context.fillRect(x(1) - ratio / 2, box.top, ratio, box.height);
    context.textBaseline = "middle";
    context.font = TA.font(11);
    rows.forEach((row, n) => {
      const y = box.top + (n + 0.68) * height;
      context.fillStyle = TA.colour("muted");
      context.fillText(row.label, box.left + 3 * ratio, box.top + (n + 0.24) * height);
      if (typeof row.ratio !== "number") return;
      context.fillStyle = TA.colour(colours[row.verdict] || "muted");
      if (typeof row.low === "number") context.fillRect(x(row.low), y - 1.5 * ratio, Math.max(ratio, x(row.high) - x(row.low)), 3 * ratio);
      context.beginPath();
      context.arc(x(row.ratio), y, 4.5 * ratio, 0, 2 * Math.PI);
      context.fill();
      const text = `${row.ratio.toFixed(3)} ${row.text || row.verdict}`, width = context.measureText(text).width;
      const right = x(row.high ?? row.ratio) + 9 * ratio, left = x(row.low ?? row.ratio) - width - 9 * ratio;
      const beside = right + width <= box.left + box.width ? right : left >= box.left ? left : null;
      // an interval over the whole width leaves room above it alone
      context.fillText(text, beside ?? box.left + box.width - width - 3 * ratio, beside === null ? y - 10 * ratio : y);
    });
    context.restore();
  };
  return TA.chart(host, {low: Math.min(...ends) / 1.05, high: Math.max(...ends) * 1.05, height: rows.length * ROW + 62, log: true, draw,
    axes: TA.axes("head / base (below 1: head is faster)", {show: false}, true)});
};

// The same work under each protocol: where the order of the two turns.
TA.protocols = (all) => {
  const host = document.getElementById("chart-protocols"), pick = document.getElementById("protocols-pick");
  const show = (number) => {
    const old = host.firstChild;
    if (old) { TA.charts = TA.charts.filter((c) => !old.contains(c.root)); old.remove(); }
    const inner = TA.element("div");
    inner.id = "chart-protocols-inner";
    host.append(inner);
    TA.ratios(inner.id, all[number].rows);
  };
  all.forEach((o, n) => { const option = TA.element("option", "", o.title); option.value = n; pick.append(option); });
  pick.addEventListener("change", () => show(Number(pick.value)));
  show(0);
};
