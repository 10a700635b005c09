// Starts what the page has data for. A part that fails says so in its place and leaves the others alone.
document.documentElement.classList.add("js");
TA.data = JSON.parse(document.getElementById("data").textContent);
TA.start = (id, part) => {
  try {
    return part();
  } catch (error) {
    const place = document.getElementById(id);
    if (place) place.append(TA.element("p", "note", `This part could not be drawn (${error.message}); the tables hold its numbers.`));
    console.error(error);
    return null;
  }
};
TA.start("kernels", TA.tables);
if (TA.data.timeline) {
  const root = document.getElementById("timeline");
  const t = TA.views.timeline = TA.start("timeline", () => TA.timeline(root, TA.data.timeline));
  if (t) {
    t.search = TA.search(t);
    TA.addresses(t);
    // links to evidence: the timeline opens there and gets the focus
    const jump = (event, view) => {
      event.preventDefault();
      t.open(view);
      TA.address.now();
      root.scrollIntoView({behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
      t.chart.focus({preventScroll: true});
    };
    for (const link of document.querySelectorAll("a[data-view]")) {
      const [f, e] = link.dataset.view.split(".").map(Number), view = t.model.views.find((v) => v.finding === f && v.evidence === e);
      if (view) link.addEventListener("click", (event) => jump(event, view));
    }
    for (const link of document.querySelectorAll("a[data-pause]")) {
      const [d, p] = link.dataset.pause.split(".").map(Number), v = (TA.data.timeline.pauses[d] || [])[p];
      if (v) link.addEventListener("click", (event) => jump(event, {finding: -1, from: v[0], to: v[1], at: v[2], dur: v[3]}));
    }
    // keys work without a click first: where nothing has the focus and the timeline is in sight
    addEventListener("keydown", (event) => {
      if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey) return;
      const box = t.chart.getBoundingClientRect();
      if (event.key === "/") { t.search?.open(); event.preventDefault(); }
      else if (/^[wasdfnp0]$/i.test(event.key) && box.bottom > 0 && box.top < innerHeight) t.key(event);
    });
    for (const body of document.querySelectorAll("#kernel-table > tbody")) {
      const kernel = Number(body.id.slice(7)) - 1;
      body.addEventListener("pointerenter", () => { if (t.lit === undefined || t.lit === null) { t.chosen = (lane, i) => lane.kind === "stream" && lane.name[i] === kernel; t.draw(); } });
      body.addEventListener("pointerleave", () => { if (t.lit === undefined || t.lit === null) { t.chosen = null; t.draw(); } });
    }
  }
}
// a comparison: two timelines on one axis of time that starts at 0 for both
if (TA.data.timelines) {
  const {sides, zero, length, repeat} = TA.data.timelines;
  const both = ["base", "head"].map((side, n) => TA.start(`timeline-${side}`, () => TA.timeline(document.getElementById(`timeline-${side}`), sides[n], {most: 210, zero: zero[n]})));
  if (both.every(Boolean)) {
    const low = Math.min(...both.map((t) => t.model.begin - t.zero)), high = Math.max(...both.map((t) => t.model.end - t.zero));
    let moving = false;
    both.forEach((t, n) => {
      const other = both[1 - n];
      t.low = t.zero + low;
      t.high = t.zero + high;
      t.home = repeat ? [t.zero, t.zero + length] : null;
      t.search = TA.search(t);
      t.follow((from, to) => {
        if (moving || (from - t.zero === other.from - other.zero && to - t.zero === other.to - other.zero)) return;
        moving = true;
        other.show(from - t.zero + other.zero, to - t.zero + other.zero, true);
        moving = false;
      });
    });
    TA.views.base = both[0];
    TA.views.head = both[1];
    TA.addresses(both[0]);
    both[0].show(...(both[0].home || [zero[0] + low, zero[0] + high]), true);
  }
}
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", () => { TA.address?.now(); TA.copy(button, button.dataset.copy === "link" ? location.href : TA.data.markdown); });
}
// folded texts are on paper too
addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((d) => { d.open = true; d.dataset.folded = ""; }));
addEventListener("afterprint", () => document.querySelectorAll("details[data-folded]").forEach((d) => { d.open = false; delete d.dataset.folded; }));
addEventListener("popstate", (event) => TA.reveal(!event.state));
TA.reveal(true);
