// Shared by everything on the page: its colours, times with the unit that suits them, making elements.
const TA = {data: {}, views: {}, redraws: []};

TA.colour = (() => {
  let known = {};
  const forget = () => { known = {}; TA.redraws.forEach((redraw) => redraw()); };
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "print"]) matchMedia(query).addEventListener("change", forget);
  return (name) => known[name] || (known[name] = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
})();

TA.kernelColour = (place) => TA.colour(place >= 0 && place < 6 ? "c" + place : "quiet");

TA.count = (value) => value.toLocaleString("en-US");

// [nanoseconds per unit, its name], the largest that is not above the value
TA.unit = (ns) => [[1e9, "s"], [1e6, "ms"], [1e3, "us"]].find(([size]) => Math.abs(ns) >= size) || [1, "ns"];

// a length to four digits: "64 ns", "39.95 us", "1.078 s"
TA.length = (ns) => {
  let [size, name] = TA.unit(ns);
  const text = (v) => v.toLocaleString("en-US", {maximumFractionDigits: v < 10 ? 3 : v < 100 ? 2 : v < 1000 ? 1 : 0, useGrouping: true});
  return `${text(ns / size)} ${name}`;
};

// a moment to the nanosecond: "1.240549 ms"
TA.moment = (ns) => {
  const [size, name] = TA.unit(ns);
  return `${(ns / size).toLocaleString("en-US", {maximumFractionDigits: Math.round(Math.log10(size))})} ${name}`;
};

// ticks of an axis over [from, to] ns, at most so many: [ns, text]
TA.ticks = (from, to, most) => {
  const wide = (to - from) / Math.max(1, most), ten = 10 ** Math.floor(Math.log10(wide));
  const step = Math.max(1, ten * [1, 2, 5, 10].find((s) => s * ten >= wide));
  const [size, name] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "us"] : [1, "ns"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  const found = [];
  for (let k = Math.ceil(from / step); k * step <= to; k++) {
    found.push([k * step, `${((k * step) / size).toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits})} ${name}`]);
  }
  return found;
};

// Integers of render/page/charts.py: seven bits a byte, the lowest first, the sign in the first bit.
TA.unpack = (text) => {
  const bytes = atob(text), out = [];
  let value = 0, size = 1;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes.charCodeAt(i);
    value += (byte & 127) * size;
    size *= 128;
    if (byte & 128) continue;
    out.push(value % 2 ? -(value + 1) / 2 : value / 2);
    value = 0;
    size = 1;
  }
  return out;
};

TA.sums = (differences) => {
  const out = new Float64Array(differences.length);
  let at = 0;
  for (let i = 0; i < differences.length; i++) out[i] = (at += differences[i]);
  return out;
};

// the first place whose value is not below
TA.lower = (array, value) => {
  let a = 0, b = array.length;
  while (a < b) { const m = (a + b) >> 1; if (array[m] < value) a = m + 1; else b = m; }
  return a;
};

TA.element = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

TA.button = (text, act, title) => {
  const made = TA.element("button", "", text);
  made.type = "button";
  if (title) made.title = title;
  made.addEventListener("click", act);
  return made;
};

TA.copy = async (button, text) => {
  const said = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { button.textContent = "Not allowed here"; }
  setTimeout(() => { button.textContent = said; }, 1500);
};
