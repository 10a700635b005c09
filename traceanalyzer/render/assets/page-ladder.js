// What each protocol would have read: one line per protocol, dots for closed form, replay and measurement.
TA.ladder = (all) => {
  const host = document.getElementById("chart-ladder"), pick = document.getElementById("ladder-pick");
  const ROW = 30;
  let made = null, now = 0;
  const draw = (u) => {
    const found = all[now], context = u.ctx, ratio = devicePixelRatio, box = u.bbox, height = box.height / found.rows.length;
    const x = (v) => u.valToPos(v, "x", true);
    context.save();
    context.textAlign = "left";
    if (found.self !== null) {
      context.fillStyle = TA.colour("self");
      context.globalAlpha = 0.6;
      context.fillRect(x(found.self) - ratio, box.top, 2 * ratio, box.height);
      context.globalAlpha = 1;
    }
    context.textBaseline = "middle";
    found.rows.forEach(([title, closed, replayed, measured], n) => {
      const y = box.top + (n + 0.68) * height;
      context.fillStyle = TA.colour("muted");
      context.font = TA.font(11);
      context.fillText(title, box.left + 3 * ratio, box.top + (n + 0.24) * height);
      context.fillStyle = TA.colour("line");
      context.fillRect(box.left, y, box.width, 1);
      if (closed !== null && found.self !== null) {
        context.fillStyle = TA.colour("event");
        context.globalAlpha = 0.3;
        const a = x(found.self), b = x(closed);
        context.fillRect(Math.min(a, b), y - 2.5 * ratio, Math.abs(b - a), 5 * ratio);
        context.globalAlpha = 1;
      }
      const dot = (value, radius, paint) => {
        if (value === null || value === undefined) return;
        context.beginPath();
        context.arc(x(value), y, radius * ratio, 0, 2 * Math.PI);
        paint();
      };
      context.strokeStyle = TA.colour("fg");
      context.lineWidth = 1.5 * ratio;
      dot(replayed, 6.5, () => context.stroke());
      context.fillStyle = TA.colour("fg");
      dot(closed, 4, () => context.fill());
      if (measured !== null && measured !== undefined) {
        const at = x(measured), r = 6 * ratio;
        context.fillStyle = TA.colour("c2");
        context.beginPath();
        context.moveTo(at, y - r);
        context.lineTo(at + r, y);
        context.lineTo(at, y + r);
        context.lineTo(at - r, y);
        context.fill();
      }
      const last = closed ?? measured ?? replayed;
      if (last !== null && last !== undefined) {
        const text = `${TA.us(last)} us`, width = context.measureText(text).width, at = x(last) + 11 * ratio;
        context.fillStyle = TA.colour("fg");
        context.fillText(text, at + width > box.left + box.width ? x(last) - width - 11 * ratio : at, y - 8 * ratio);
      }
    });
    context.restore();
  };
  const show = (number) => {
    now = number;
    const found = all[now], values = found.rows.flatMap((r) => r.slice(1)).concat(found.self).filter((v) => typeof v === "number" && v > 0);
    const high = Math.max(...values), low = Math.min(...values), log = high / low >= 20;
    if (made) { TA.charts.splice(TA.charts.indexOf(made.chart), 1); made.chart.destroy(); made.host.remove(); }
    const inner = TA.element("div");
    host.append(inner);
    made = TA.chart(inner, {low: log ? low / 1.3 : 0, high: high * (log ? 1.3 : 1.08), height: found.rows.length * ROW + 62, log, draw,
      axes: TA.axes(log ? "us per call (logarithmic)" : "us per call", {show: false}, log)});
  };
  all.forEach((l, n) => { const option = TA.element("option", "", l.title); option.value = n; pick.append(option); });
  pick.addEventListener("change", () => show(Number(pick.value)));
  show(0);
};
