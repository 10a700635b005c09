// Starts what the page has data for. A part that fails says so in its place and leaves the others alone.
document.documentElement.classList.add("js");
TA.data = JSON.parse(document.getElementById("data").textContent);
TA.start = (id, part) => {
  try {
    return part();
  } catch (error) {
    const place = document.getElementById(id);
    if (place) place.replaceChildren(TA.element("p", "note", `This chart could not be drawn (${error.message}); the tables hold its numbers.`));
    console.error(error);
    return null;
  }
};
TA.start("kernels", TA.tables);
{
  const d = TA.data;
  if (d.timeline) {
    TA.views.timeline = TA.start("chart-timeline", () => TA.timeline(d.timeline));
    if (d.depth) TA.start("chart-depth", () => TA.depth(d.depth, TA.views.timeline, [d.timeline.begin / 1000, d.timeline.end / 1000]));
    else document.getElementById("chart-depth").remove();
  }
  if (d.ratios) TA.start("chart-ratios", () => TA.ratios("chart-ratios", d.ratios));
  if (d.protocols) TA.start("chart-protocols", () => TA.protocols(d.protocols));
  if (d.ladders) TA.start("chart-ladder", () => TA.ladder(d.ladders));
  if (d.distributions) TA.start("chart-distribution", () => TA.distributions(d.distributions));
}
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", async () => {
    const said = button.textContent, text = button.dataset.copy === "link" ? location.href : TA.data.markdown;
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Not allowed here"; }
    setTimeout(() => { button.textContent = said; }, 1500);
  });
}
// A link to a rule opens its text; a link to a row that the filter hides shows it again.
TA.reveal = () => {
  const stretch = /^#t=([\d.]+),([\d.]+)$/.exec(location.hash);
  if (stretch) return void TA.views.timeline?.made.show(Number(stretch[1]), Number(stretch[2]));
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.tagName === "DETAILS") target.open = true;
  if (target.hidden) document.querySelectorAll("input[data-filters]").forEach((f) => f.clear());
  target.scrollIntoView();
};
addEventListener("hashchange", TA.reveal);
TA.reveal();
