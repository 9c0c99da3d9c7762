// The overview: is it Headgate or the service, by what, and since when.

import { chart, sparkline } from "./chart.js";
import { h } from "./dom.js";
import { ago, clip, duration, number, percent } from "./format.js";
import { byTrouble, cause, keyText, nameOf, quantile, route } from "./logic.js";
import { badge, card, figures, link, mode, table } from "./parts.js";
import { answerOf, state } from "./state.js";

/** The causes of refusals, in the order of the chart. */
export const causes = [
  { name: "fair_share", label: "Refused: fair share" }, { name: "rules", label: "Refused: rules" }, { name: "bans", label: "Refused: bans" },
  { name: "quotas", label: "Refused: quotas" }, { name: "throttle", label: "Refused: throttle" }, { name: "undecided", label: "Refused: undecided" },
  { name: "other", label: "Refused: other" },
];

/** The series of a rule or a stage. */
export function seriesOf(rule, what) {
  return "rule." + rule.name + "." + what;
}

/** The rows that have a sparkline. */
const sparks = 12;

export function series() {
  return ["passed", "service_failed", "would_refuse", ...causes.map((c) => "refused." + c.name)];
}

/** The series of the sparklines, which have two minutes in any span. */
export function sparkSeries() {
  const rules = state.live ? byTrouble(state.live.rules).slice(0, sparks) : [];
  return rules.flatMap((r) => [seriesOf(r, "passed"), seriesOf(r, r.mode.startsWith("shadow") ? "would_refuse" : "refused")]);
}

export function reads() {
  return [{ path: "mode", every: 10 }];
}

export function overview(actions) {
  const live = state.live;
  return [top(live), h("div", { class: "columns", key: "main" }, verdicts(live), attention(live)), rules(live, actions)];
}

function top(live) {
  const of = cause(live);
  const t = live.totals;
  const all = live.instances ?? [];
  const over = all.length ? ", over " + all.filter((i) => i.ok).length + (all.length === 1 ? " instance" : " instances") + " of " + all.length : "";
  const most = byTrouble(live.rules).find((r) => r.refused > 0)?.top;
  const p99 = quantile(t.duration_bounds, t.service_time, 0.99);
  return h("section", { class: "card", key: "top", "aria-label": "State" },
    h("div", { class: "said" }, badge(of.level, of.text), h("h1", { id: "sentence" }, live.sentence)),
    h("p", { class: "quiet" }, "Mean of the last " + live.window_seconds + " s" + over + ".", most && " Most refused key: ", most && h("code", null, clip(keyText(most), 60))),
    figures([
      { label: "Requests", value: number(t.requests), unit: "/s", rest: t.in_flight ? t.in_flight + " in flight" : "" },
      { label: "Refused by Headgate", value: number(t.refused), unit: "/s", rest: percent(t.refused, t.requests) },
      { label: "Reached the service", value: number(t.passed), unit: "/s", rest: p99 === null ? "" : "99 % within " + duration(p99) },
      { label: "Failed at the service", value: number(t.service_failed), unit: "/s", rest: percent(t.service_failed, t.requests) },
    ]));
}

/** The marks of changes, for charts. */
export function marks(live) {
  return (live.marks ?? []).map((m) => ({ at: Date.parse(m.at) / 1000, text: m.text, by: m.by }));
}

/** The last changes as a line below a chart. */
export function changes(live) {
  const list = (live.marks ?? []).slice(0, 3);
  if (!list.length) return null;
  return "▼ " + list.map((m) => new Date(m.at).toLocaleTimeString() + " " + clip(m.text, 80) + (m.by ? " (" + clip(m.by, 30) + ")" : "")).join(" · ");
}

function verdicts(live) {
  const by = live.totals.refused_by ?? {};
  const shown = causes.filter((c) => ["fair_share", "rules", "bans", "throttle"].includes(c.name) || by[c.name] > 0);
  return chart({
    id: "verdicts", title: "Served above the line, refused below",
    up: [{ name: "passed", minus: "service_failed", label: "Served", look: "served" }, { name: "service_failed", label: "Service failed", look: "failed" }],
    down: shown.map((c) => ({ name: "refused." + c.name, label: c.label, look: c.name })),
    lines: [{ name: "would_refuse", label: "Would be refused (shadow)", look: "line-shadow", sign: -1, stacked: true }],
    marks: marks(live), note: changes(live),
  });
}

/** Where an entry of the list leads to. */
function target(a) {
  switch (a.about) {
    case "rule": return route("rule", a.name);
    case "client": return route("clients");
    case "quota": return route("quotas");
    case "throttle": return route("throttle");
    default: return route("instances");
  }
}

function attention(live) {
  const list = (live.attention ?? []).slice(0, 6);
  const more = (live.attention_total ?? list.length) - list.length;
  const words = { fault: "fault", warning: "look", note: "note" };
  return card("Needs attention", { class: "attention" }, list.length === 0 && h("p", { class: "calm" }, badge("good", "nothing"), " No fault is known here."),
    h("ul", null, list.map((a) => h("li", { key: a.about + a.name + a.instance + a.text }, badge(a.level, words[a.level] ?? a.level), h("span", null,
      link(target(a), (a.instance ? a.instance + ": " : "") + clip(a.text, 150)),
      a.since && h("span", { class: "quiet" }, " since " + ago(a.since, Date.parse(live.now))))))),
    more > 0 && h("p", { class: "quiet" }, "and " + more + " more, in ", link(route("instances"), "instances and stores")));
}

function rules(live, actions) {
  const now = Date.parse(live.now);
  const rows = byTrouble(live.rules);
  const drawn = new Set(rows.slice(0, sparks).map((r) => r.kind + r.name));
  const total = live.rules_total > live.rules.length ? " The first " + live.rules.length + " of " + live.rules_total + "." : "";
  const enforced = live.rules.some((r) => r.mode.startsWith("enforce"));
  const all = [enforced && actions.button("All to shadow…", () => actions.turn("", "shadow"), { id: "all-shadow" }), answerOf("mode").value?.modes?.length > 0 && actions.button("All back…", () => actions.back(""), { id: "all-back" })];
  return card("Rules and stages, most refusals first", { key: "rules", aside: h("div", { class: "actions" }, all) },
    table("rules", [{ label: "Rule or stage", narrow: true, break: true }, { label: "Mode" }, { label: "Limit" }, { label: "Refused/s", number: true, narrow: true },
      { label: "Part", number: true, narrow: true }, { label: "Since", narrow: true, still: true }, { label: "Last 2 min" }, { label: "Most refused key" }],
    rows.map((r) => row(r, now, drawn.has(r.kind + r.name))), "No rule has decided yet."),
    h("p", { class: "quiet" }, "In brackets: what rules in shadow would refuse; these requests have passed. Since: the first refusal after 15 s without one." + total));
}

function row(r, now, drawn) {
  const shadow = r.mode.startsWith("shadow");
  const refused = shadow ? r.would_refuse : r.refused;
  const all = shadow ? r.passed : r.passed + r.refused;
  return {
    key: r.kind + "/" + r.name, warn: r.refused > 0,
    cells: [
      [link(route("rule", r.kind === "rule" ? r.name : r.kind), nameOf(r), { class: "name" }), r.differs && [" ", badge("warning", "differs")]], mode(r.mode),
      h("code", null, clip((r.limits ?? []).join(", "), 60)), shadow && refused > 0 ? "(" + number(refused) + ")" : number(refused), percent(refused, Math.max(all, refused)),
      r.since ? ago(r.since, now) : "–",
      drawn && sparkline(seriesOf(r, "passed"), shadow ? "" : seriesOf(r, "refused"), shadow ? seriesOf(r, "would_refuse") : ""),
      r.top && link(route("why", "", { rule: r.name, key: r.top }), clip(keyText(r.top), 32), { class: "key" }),
    ],
  };
}
