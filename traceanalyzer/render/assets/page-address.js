// What is in sight is in the address: #t=from,to&row=N (us from the start of the trace), #finding-2, #kernel-3. A step of the reader's
// (a row, a finding, a kernel) is one that Back undoes; zooming and moving alone replace the address.
TA.address = null;
TA.addresses = (t) => {
  const us = (ns) => (ns / 1000).toFixed(3);
  const plain = () => location.href.split("#")[0];
  const text = () => {
    const row = t.selected >= 0 ? `row=${t.selected}` : "";
    if (t.home ? t.from === t.home[0] && t.to === t.home[1] : t.whole()) return row && `#${row}`;
    return `#t=${us(t.from)},${us(t.to)}${row && "&" + row}`;
  };
  const put = (hash, step) => {
    if (hash === location.hash) return;
    // a page without an address (about:srcdoc) has no history to write to
    try { history[step ? "pushState" : "replaceState"]({mine: true}, "", plain() + hash); } catch { /* none to write to */ }
  };
  let waiting = 0;
  const later = () => { clearTimeout(waiting); waiting = setTimeout(now, 300); };
  const now = () => {
    clearTimeout(waiting);
    waiting = 0;
    if (text() || /^#(t|row)=/.test(location.hash)) put(text(), false);
  };
  t.moved = later;
  t.chose = () => { clearTimeout(waiting); put(text(), true); };
  t.found = (view) => { clearTimeout(waiting); put(`#finding-${view.finding + 1}`, true); };
  // Shows what an address says; true if it says something of the timeline.
  const show = (hash, scroll) => {
    const place = /^#(?:t=([\d.e+]+),([\d.e+]+))?&?(?:row=(\d+))?$/.exec(hash);
    const finding = /^#finding-(\d+)$/.exec(hash), kernel = /^#kernel-(\d+)$/.exec(hash);
    if (place && hash.length > 1) {
      if (place[1]) t.show(Number(place[1]) * 1000, Number(place[2]) * 1000, true);
      t.select(place[3] && Number(place[3]) < t.model.rows ? Number(place[3]) : -1, {move: !place[1], quiet: true});
    } else if (finding) {
      const view = t.model.views.find((v) => v.finding === Number(finding[1]) - 1);
      if (view) { t.active = view; t.show(view.from, view.to, true); t.draw(); }
    } else if (kernel) TA.light(Number(kernel[1]) - 1);
    else if (hash === "") { t.active = null; t.select(-1, {quiet: true}); TA.light(null); t.show(...(t.home || [-Infinity, Infinity]), true); }
    if (!kernel && t.lit !== undefined && t.lit !== null) TA.light(null);
    clearTimeout(waiting);
    return Boolean(place && hash.length > 1) || (Boolean(finding) && !scroll);
  };
  TA.address = {now: () => { if (waiting) now(); }, show};
};

// Follows an address: opens a folded text, shows a row that a filter or a fold hides, and goes there.
TA.reveal = (scroll) => {
  const hash = location.hash;
  if (TA.address?.show(hash, scroll)) return;
  const target = hash.length > 1 && document.getElementById(decodeURIComponent(hash.slice(1)));
  if (!target) return;
  for (let d = target.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
  if (target.tagName === "TBODY") TA.unfold(target.closest("table"));
  if (target.hidden) document.querySelectorAll("input[data-filters]").forEach((f) => f.clear());
  target.scrollIntoView();
};
