// Distributions: per population a band with its histogram, its median and some of its values as dots.
TA.distributions = (all) => {
  const BAND = 104, COLOURS = {"self-time": "self", dispatch: "dispatch", "event pair": "event", "base self-time": "self", "head self-time": "c1",
    "base dispatch": "dispatch", "head dispatch": "c3"};
  const host = document.getElementById("chart-distribution"), readout = document.getElementById("distribution-readout");
  const pick = document.getElementById("distribution-pick");
  let made = null, now = 0;

  const draw = (u) => {
    const found = all[now], context = u.ctx, ratio = devicePixelRatio, box = u.bbox;
    const x = (ns) => u.valToPos(ns / 1000, "x", true);
    context.save();
    context.textAlign = "left";
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
    const height = box.height / found.bands.length;
    found.bands.forEach((band, n) => {
      const top = box.top + n * height, floor = top + height * 0.72, colour = TA.colour(COLOURS[band.label] || "c" + n);
      const most = Math.max(...band.counts);
      context.fillStyle = colour;
      context.globalAlpha = 0.55;
      band.counts.forEach((count, i) => {
        if (!count) return;
        const left = x(found.edges[i]), right = x(found.edges[i + 1]), size = Math.max(1.5 * ratio, (count / most) * height * 0.5);
        context.fillRect(left, floor - size, Math.max(ratio, right - left - ratio), size);
      });
      context.globalAlpha = 0.7;
      TA.sums(band.samples).forEach((value, i) => {
        // dots at one value are spread so that they can be told apart; how far says nothing
        const spread = ((i * 7919) % 13) / 13;
        context.beginPath();
        context.arc(x(value), floor + (5 + spread * (height * 0.28 / ratio - 10)) * ratio, 1.6 * ratio, 0, 2 * Math.PI);
        context.fill();
      });
      context.globalAlpha = 1;
      context.fillRect(x(band.p50) - ratio / 2, top + height * 0.16, 1.5 * ratio, height * 0.84);
      context.font = TA.font(11.5);
      context.textBaseline = "top";
      context.fillStyle = TA.colour("fg");
      context.fillText(`${band.label}: p50 ${TA.us(band.p50 / 1000)} us, n ${band.n.toLocaleString("en-US")}`, box.left + 4 * ratio, top + 3 * ratio);
      context.fillStyle = TA.colour("line");
      context.fillRect(box.left, top + height - 1, box.width, 1);
    });
    found.marks.forEach((mark, row) => {
      const at = x(mark.at), text = `${mark.label} ${TA.us(mark.at / 1000)} us`;
      context.strokeStyle = context.fillStyle = TA.colour("event");
      context.lineWidth = 1.5 * ratio;
      context.setLineDash([5 * ratio, 3 * ratio]);
      context.beginPath();
      context.moveTo(at, box.top);
      context.lineTo(at, box.top + box.height);
      context.stroke();
      context.setLineDash([]);
      context.font = TA.font(11.5);
      context.textBaseline = "top";
      const width = context.measureText(text).width;
      const left = Math.max(box.left, Math.min(at + 4 * ratio, box.left + box.width - width - 2 * ratio));
      context.fillText(text, left, box.top + (17 + 14 * row) * ratio);
    });
    context.restore();
  };

  const hover = (u) => {
    const found = all[now];
    if (u.cursor.left < 0) return void (readout.textContent = resting(found));
    const at = u.posToVal(u.cursor.left, "x") * 1000, n = Math.floor((u.cursor.top / u.over.clientHeight) * found.bands.length);
    const band = found.bands[Math.max(0, Math.min(found.bands.length - 1, n))];
    const i = found.edges.findIndex((e, k) => at >= e && at < found.edges[k + 1]);
    if (i < 0) return void (readout.textContent = resting(found));
    readout.textContent = `${band.label}: ${band.counts[i].toLocaleString("en-US")} of ${band.n.toLocaleString("en-US")} between ${TA.us(found.edges[i] / 1000)} and ${TA.us(found.edges[i + 1] / 1000)} us`;
  };
  const resting = (found) => {
    const below = found.bands.filter((b) => b.below).map((b) => `${b.below} of ${b.label}`).join(", ");
    return (found.log ? "Logarithmic axis." : "Linear axis.") + (below ? ` Below the axis, in its first bar: ${below}.` : "");
  };

  const show = (number) => {
    now = number;
    const found = all[now], edges = found.edges;
    if (made) { TA.charts.splice(TA.charts.indexOf(made.chart), 1); made.chart.destroy(); made.host.remove(); }
    const inner = TA.element("div");
    host.append(inner);
    made = TA.chart(inner, {
      low: edges[0] / 1000, high: edges[edges.length - 1] / 1000, height: found.bands.length * BAND + 62, log: found.log, draw, hover,
      axes: TA.axes(found.log ? "us (logarithmic)" : "us", {show: false}, found.log),
    });
    host.setAttribute("aria-label", `Distribution of ${found.title}: ` + found.bands.map((b) => `${b.label} median ${TA.us(b.p50 / 1000)} us of ${b.n}`).join(", "));
    readout.textContent = resting(found);
  };
  all.forEach((d, n) => { const option = TA.element("option", "", `${d.kind}: ${d.title}`); option.value = n; pick.append(option); });
  pick.addEventListener("change", () => show(Number(pick.value)));
  // keys reach the box with the tab stop, the chart lies within and is replaced with each choice
  host.addEventListener("keydown", (event) => {
    if (event.target !== host) return;
    made.host.dispatchEvent(new KeyboardEvent("keydown", {key: event.key, bubbles: false}));
    if ("+-=_0".includes(event.key) || event.key.startsWith("Arrow")) event.preventDefault();
  });
  TA.tools("distribution", () => made);
  show(0);
};
