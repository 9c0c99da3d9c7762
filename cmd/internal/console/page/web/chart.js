// Charts: columns or areas above and below a line. Each series has a pattern beside its colour, and the figures are readable by keyboard and
// as a table.

import { h } from "./dom.js";
import { clip, clock, number } from "./format.js";
import { axisEnd, nice } from "./logic.js";
import { spans } from "./series.js";
import { changed, state } from "./state.js";

const margin = { left: 42, top: 12, bottom: 22 };
const groups = [1, 2, 3, 5, 6, 10, 15, 20, 30, 60];

/** The patterns, as one hidden drawing that all charts refer to. */
export function patterns() {
  const of = (id, ...shapes) => h("pattern", { id: "p-" + id, class: "k-" + id.replace(/-lent$/, ""), width: 6, height: 6, patternUnits: "userSpaceOnUse" },
    h("rect", { width: 6, height: 6, class: "ground" }), shapes.map((d) => h("path", { d, class: "ink" })));
  const diagonal = "M-1 1L1 -1M0 6L6 0M5 7L7 5";
  const back = "M-1 5L1 7M0 0L6 6M5 -1L7 1";
  return h("svg", { class: "patterns", "aria-hidden": "true", width: 0, height: 0 },
    of("fair_share", diagonal), of("bans", diagonal, back), of("throttle", "M1 1h2v2h-2zM4 4h2v2h-2z"), of("quotas", "M0 1.5H6M0 4.5H6"),
    of("undecided", "M1.5 0V6M4.5 0V6"), of("other", "M2 2h2v2h-2z"), of("failed", "M0 3H6M3 0V6"), of("none", diagonal),
    of("critical_plus", diagonal, back), of("sheddable_plus", diagonal), of("sheddable", "M1 1h2v2h-2zM4 4h2v2h-2z"),
    Array.from({ length: 8 }, (_, n) => of("c" + n + "-lent", n % 2 ? back : diagonal)));
}

const solid = new Set(["served", "rules", "critical", "in_flight", ...Array.from({ length: 8 }, (_, n) => "c" + n)]);

function paintOf(look) {
  return solid.has(look) ? { class: "k-" + look + " solid" } : { fill: "url(#p-" + look + ")" };
}

/** A sample of a series' pattern. Looks that begin with "line" are lines. */
export function swatch(look) {
  return h("svg", { class: "swatch", width: 14, height: 12, "aria-hidden": "true" }, look.startsWith("line")
    ? h("path", { d: "M0 6H14", class: look }) : h("rect", { width: 14, height: 12, rx: 2, ...paintOf(look) }));
}

/** The time that charts show, and how many steps a column of a chart of so many pixels has. */
export function frame(width, least = 4) {
  const span = spans[state.span];
  const until = Math.floor(Date.parse(state.live.now) / 1000 / span.step) * span.step;
  const from = until - span.step * span.length;
  const k = groups.find((g) => width / (span.length / g) >= least) ?? groups.at(-1);
  return { from, until, k, wide: k * span.step, first: Math.floor(from / (k * span.step)) * k * span.step, tier: state.tiers[state.span] };
}

/**
 * A chart. up, down and lines are lists of {name, label, look}: name is a series of the history, and gauge says that it is one. A line may
 * have a sign of -1, below the axis, and stacked, on the columns. minus is a series to subtract, and values a function that gives the columns. kind is columns or area.
 */
export function chart({ id, title, up = [], down = [], lines = [], marks = [], unit = "/s", gauge = false, kind = "columns", height = 250, note, direct = false, least = 0 }) {
  const own = (state.charts[id] ??= { width: 600, cursor: null, table: false });
  const f = frame(own.width - margin.left - (direct && own.width > 700 ? 110 : 8));
  const values = (name, s) => f.tier.columns(name, f.from, f.until, f.k, s.gauge ?? gauge);
  const read = (s) => ({ ...s, values: s.values?.(f) ?? (s.minus ? less(values(s.name, s), values(s.minus, s)) : values(s.name, s)) });
  const data = { up: up.map(read), down: down.map(read), lines: lines.map(read) };
  const all = [...data.up, ...data.down, ...data.lines];
  const count = all[0]?.values.length ?? 0;
  const at = cursorColumn(own, f, count);
  const legend = h("ul", { class: "legend" }, all.filter((s) => !s.within).map((s) => h("li", { key: s.look + s.label }, swatch(s.look), h("span", null, s.label),
    h("b", null, number(together(s, all, at))), h("span", { class: "quiet" }, unit))));
  const body = own.table ? table(title, all, f, unit) : drawing({ title, data, marks, unit, kind, height, own, f, count, at, all, direct, least });
  return h("section", { class: "card chart", key: "chart-" + id, "aria-label": title },
    h("header", null, h("h2", null, title), h("span", { class: "quiet time" }, own.cursor === null ? "now" : clock(f.first + at * f.wide, f.wide < 60)),
      h("button", { type: "button", "aria-pressed": String(own.table), onclick: () => { own.table = !own.table; changed(); } }, "Table")),
    body, legend, note && h("p", { class: "quiet" }, note), state.historyFault && h("p", { class: "quiet" }, "No history: " + state.historyFault + "."));
}

// together adds the series that are a part of another one in the legend, such as what a client borrows.
function together(s, all, at) {
  return all.reduce((sum, o) => (o.within === s.label ? sum + (o.values[at] ?? 0) : sum), s.values[at]);
}

function less(all, part) {
  return all.map((v, i) => (v === null ? null : Math.max(0, v - (part[i] ?? 0))));
}

function cursorColumn(own, f, count) {
  if (own.cursor !== null) {
    const at = Math.floor((own.cursor - f.first) / f.wide);
    if (at >= 0 && at < count) return at;
    own.cursor = null;
  }
  // The last column may have just begun, so "now" is the one before it when columns are narrow groups.
  return Math.max(0, count - 1 - (f.k > 1 ? 1 : 0));
}

function table(title, all, f, unit) {
  const count = all[0]?.values.length ?? 0;
  const rows = Array.from({ length: Math.min(count, 60) }, (_, i) => count - 1 - i);
  return h("div", { class: "scroll figures", tabindex: 0, role: "region", "aria-label": title + ", figures" }, h("table", null,
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "Time"), all.map((s) => h("th", { scope: "col", class: "number" }, s.label + " " + unit)))),
    h("tbody", null, rows.map((i) => h("tr", { key: f.first + i * f.wide }, h("th", { scope: "row" }, clock(f.first + i * f.wide, f.wide < 60)),
      all.map((s) => h("td", { class: "number" }, number(s.values[i]))))))));
}

function drawing({ title, data, marks, unit, kind, height, own, f, count, at, all, direct, least }) {
  const sums = (list) => Array.from({ length: count }, (_, i) => list.reduce((sum, s) => sum + (s.values[i] ?? 0), 0));
  const upSums = sums(data.up);
  const downSums = sums(data.down);
  const lineTops = data.lines.filter((l) => !(l.sign < 0)).flatMap((l) => l.values);
  const lineLows = data.lines.filter((l) => l.sign < 0).flatMap((l) => l.values.map((v, i) => (v ?? 0) + (l.stacked ? downSums[i] : 0)));
  const top = nice(Math.max(axisEnd(upSums), axisEnd(lineTops), least));
  const low = data.down.length || lineLows.length ? nice(Math.max(axisEnd(downSums), axisEnd(lineLows), top / 6, least)) : 0;
  const plot = height - margin.top - margin.bottom;
  const width = Math.max(120, own.width);
  const right = width - (direct && width > 700 ? 110 : 8);
  const step = (right - margin.left) / Math.max(1, count);
  const scale = plot / (top + low);
  const g = { zero: margin.top + top * scale, scale, step, left: margin.left, top, low, end: margin.top + plot, right, count };
  const shape = kind === "area" ? areas : columns;
  const value = all.map((s) => s.label + " " + number(s.values[at]) + unit).join(", ");
  return h("svg", {
    class: "plot", height, width: "100%", key: "plot", tabindex: 0, role: "slider", "aria-label": title, "aria-valuemin": 0, "aria-valuemax": Math.max(0, count - 1),
    "aria-valuenow": at, "aria-valuetext": (own.cursor === null ? "now: " : clock(f.first + at * f.wide) + ": ") + value, made: (node) => measure(node, own),
    onkeydown: (e) => move(e, own, f, count, at), onpointermove: (e) => point(e, own, f, g), onpointerleave: () => { own.cursor = null; changed(); },
    onblur: () => { own.cursor = null; changed(); },
  }, axis(g, f), empty(all, g), shape(data.up, g, 1), shape(data.down, g, -1), data.lines.map((l) => line(l, g, l.stacked ? downSums : null)),
  direct && width > 700 && names(data.up, g),
  h("path", { key: "zero", class: "zero", d: "M" + g.left + " " + round(g.zero) + "H" + g.right }),
  cuts(upSums, downSums, g), marks.map((m, i) => mark(m, i, f, g)),
  own.cursor !== null && h("path", { key: "cursor", class: "cursor", d: "M" + round(g.left + (at + 0.5) * step) + " " + margin.top + "V" + round(g.end) }));
}

const round = (n) => Math.round(n * 10) / 10;

function measure(node, own) {
  const watch = new ResizeObserver(() => {
    if (!node.isConnected) return watch.disconnect();
    const width = Math.round(node.clientWidth || node.getBoundingClientRect().width);
    if (width && width !== own.width) {
      own.width = width;
      changed();
    }
  });
  watch.observe(node);
}

function move(e, own, f, count, at) {
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -count, End: count }[e.key];
  if (by === undefined) return;
  e.preventDefault();
  const to = Math.min(count - 1, Math.max(0, at + by));
  own.cursor = f.first + to * f.wide;
  changed();
}

function point(e, own, f, g) {
  const x = e.clientX - e.currentTarget.getBoundingClientRect().left;
  const at = Math.min(g.count - 1, Math.max(0, Math.floor((x - g.left) / g.step)));
  own.cursor = f.first + at * f.wide;
  changed();
}

function axis(g, f) {
  const ticks = [g.top, g.top / 2, 0, ...(g.low > g.top / 3 ? [-g.low / 2] : []), ...(g.low ? [-g.low] : [])];
  const lines = ticks.map((v) => h("path", { key: "g" + v, class: "grid", d: "M" + g.left + " " + round(g.zero - v * g.scale) + "H" + g.right }));
  const labels = ticks.map((v) => h("text", { key: "t" + v, x: g.left - 6, y: round(g.zero - v * g.scale) + 4, class: "tick end" }, number(Math.abs(v))));
  const times = [];
  const seconds = f.until - f.from;
  const every = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200].find((s) => (seconds / s) * 64 <= g.right - g.left) ?? 86400;
  const zone = new Date(f.first * 1000).getTimezoneOffset() * 60;
  for (let t = Math.ceil((f.first - zone) / every) * every + zone; t < f.until; t += every) {
    const x = g.left + ((t - f.first) / f.wide) * g.step;
    if (x > g.left + 16 && x < g.right - 16) times.push(h("text", { key: "x" + t, x: round(x), y: g.end + 16, class: "tick middle" }, clock(t, false)));
  }
  return [lines, labels, times];
}

// empty hatches the time without data.
function empty(all, g) {
  const out = [];
  let from = -1;
  for (let i = 0; i <= g.count; i++) {
    const none = i < g.count && all.every((s) => s.values[i] === null);
    if (none && from < 0) from = i;
    if (!none && from >= 0) {
      const wide = (i - from) * g.step;
      // The newest column may lack its first second.
      if (!(i === g.count && i - from <= 2)) {
        out.push(h("rect", { key: "n" + out.length, x: round(g.left + from * g.step), y: margin.top, width: round(wide), height: round(g.end - margin.top), fill: "url(#p-none)", class: "none" }));
        if (wide > 90) out.push(h("text", { key: "w" + out.length, x: round(g.left + from * g.step + wide / 2), y: margin.top + 22, class: "tick middle" }, "no data yet"));
      }
      from = -1;
    }
  }
  return out;
}

function columns(list, g, sign) {
  const gap = g.step >= 4 ? 1 : 0;
  const base = new Float64Array(g.count);
  const most = sign > 0 ? g.top : g.low;
  return list.map((s) => {
    let d = "";
    for (let i = 0; i < g.count; i++) {
      const v = s.values[i];
      if (!v) continue;
      const from = Math.min(base[i], most);
      const to = Math.min(base[i] + v, most);
      base[i] += v;
      if (to <= from) continue;
      d += "M" + round(g.left + i * g.step) + " " + round(g.zero - sign * from * g.scale) + "h" + round(g.step - gap) + "V" + round(g.zero - sign * to * g.scale) + "h" + -round(g.step - gap) + "z";
    }
    return h("path", { key: sign + s.label, d, ...paintOf(s.look) });
  });
}

function areas(list, g, sign) {
  const base = new Float64Array(g.count);
  const x = (i) => round(g.left + (i + 0.5) * g.step);
  return list.map((s) => {
    let d = "";
    for (let i = 0; i < g.count; i++) {
      if (s.values[i] === null) continue;
      const start = i;
      let over = "";
      let under = "";
      for (; i < g.count && s.values[i] !== null; i++) {
        over += (over ? "L" : "M") + x(i) + " " + round(g.zero - sign * Math.min(base[i] + s.values[i], g.top) * g.scale);
        under = "L" + x(i) + " " + round(g.zero - sign * Math.min(base[i], g.top) * g.scale) + under;
        base[i] += s.values[i];
      }
      if (i - start > 1) d += over + under + "z";
    }
    return h("path", { key: sign + s.label, d, ...paintOf(s.look) });
  });
}

function line(s, g, base) {
  const sign = s.sign ?? 1;
  let d = "";
  let on = false;
  s.values.forEach((v, i) => {
    if (v === null || (base && v === 0)) {
      on = false;
      return;
    }
    const level = Math.min(v + (base ? base[i] : 0), sign > 0 ? g.top : g.low);
    const y = round(g.zero - sign * level * g.scale);
    const x = round(g.left + i * g.step);
    d += base ? "M" + x + " " + y + "h" + round(g.step - 1) : (on ? "L" : "M") + round(x + g.step / 2) + " " + y;
    on = true;
  });
  return h("path", { key: "l" + s.label, d, class: s.look });
}

// names writes the series of a stack beside its right end, without overlap.
function names(list, g) {
  const last = g.count - 1;
  let base = 0;
  let above = g.end + 14;
  return list.filter((s) => !s.within).map((s) => {
    const size = together(s, list, last) ?? 0;
    const y = Math.min(above - 14, g.zero - (base + size / 2) * g.scale);
    base += size;
    above = y;
    return y > margin.top ? h("text", { key: "name" + s.label, class: "label", x: g.right + 6, y: round(y + 4) }, clip(s.label, 15)) : null;
  });
}

// cuts marks the columns that go beyond the axis.
function cuts(up, down, g) {
  let d = "";
  for (let i = 0; i < g.count; i++) {
    const x = g.left + (i + 0.5) * g.step;
    if (up[i] > g.top * 1.001) d += "M" + round(x - 4) + " " + (margin.top + 5) + "h8l-4 -6z";
    if (g.low && down[i] > g.low * 1.001) d += "M" + round(x - 4) + " " + round(g.end - 5) + "h8l-4 6z";
  }
  return d && h("path", { key: "cuts", d, class: "cut" });
}

function mark(m, i, f, g) {
  const x = g.left + ((m.at - f.first) / f.wide) * g.step;
  if (x < g.left || x > g.right) return null;
  return h("path", { key: "mark" + i, class: "mark", d: "M" + round(x) + " " + margin.top + "V" + round(g.end) + "M" + round(x - 4.5) + " " + (margin.top - 9) + "h9l-4.5 8z" });
}

/** A small drawing of two minutes: what passed above, what was refused below. */
export function sparkline(passed, refused, would) {
  const width = 104;
  const high = 26;
  const tier = state.tiers["5m"];
  const until = Math.floor(Date.parse(state.live.now) / 1000);
  const k = 2;
  const read = (name) => (name && tier.has(name) ? tier.columns(name, until - 120, until, k) : []);
  const up = read(passed);
  const down = read(refused);
  const shadow = read(would);
  const most = Math.max(0.001, ...up.map((v, i) => (v ?? 0) + Math.max(down[i] ?? 0, shadow[i] ?? 0)));
  const share = Math.max(0, ...down.map((v) => v ?? 0), ...shadow.map((v) => v ?? 0)) / most;
  const zero = 1 + (high - 2) * (1 - Math.max(0.08, Math.min(0.7, share)));
  const step = width / 61;
  const path = (values, room, sign) => values.map((v, i) => (v ? "M" + round(i * step) + " " + round(zero) + "h" + round(step - 0.4) + "v" + round((-sign * v * room) / Math.max(0.001, ...values.map((x) => x ?? 0))) + "h" + -round(step - 0.4) + "z" : "")).join("");
  return h("svg", { class: "spark", width, height: high, "aria-hidden": "true" },
    h("path", { d: path(up, zero - 1, 1), class: "k-served solid" }), h("path", { d: path(down, high - 1 - zero, -1), class: "k-rules solid" }),
    h("path", { d: path(shadow, high - 1 - zero, -1), class: "line-shadow" }), h("path", { d: "M0 " + round(zero) + "H" + width, class: "zero" }));
}
