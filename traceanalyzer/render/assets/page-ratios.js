// Ratios of two runs with their intervals, one line each, on a logarithmic axis around 1.
TA.ratios = (rows) => {
  const ROW = 30, host = document.getElementById("chart-ratios");
  const ends = rows.flatMap((r) => [r.ratio, r.low, r.high]).filter((v) => typeof v === "number" && v > 0).concat([0.97, 1.03]);
  const colours = {FASTER: "ok", SLOWER: "bad", SAME: "muted", UNDECIDED: "warn"};
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
      const text = `${row.ratio.toFixed(3)} ${row.verdict}`, width = context.measureText(text).width, at = x(row.high ?? row.ratio) + 9 * ratio;
      context.fillText(text, at + width > box.left + box.width ? x(row.low ?? row.ratio) - width - 9 * ratio : at, y);
    });
    context.restore();
  };
  TA.chart(host, {low: Math.min(...ends) / 1.05, high: Math.max(...ends) * 1.05, height: rows.length * ROW + 62, log: true, draw,
    axes: TA.axes("head / base of the median self-time (below 1: head is faster)", {show: false})});
};
