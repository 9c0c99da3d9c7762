// One rule or stage: what it says, what it refuses, and what other limits would refuse.

import { chart } from "./chart.js";
import * as act from "./actions.js";
import { query } from "./api.js";
import { h } from "./dom.js";
import { ago, clip, number, percent } from "./format.js";
import { keyText, nameOf, route } from "./logic.js";
import { keyRoute } from "./keys.js";
import { changes, marks, seriesOf } from "./overview.js";
import { badge, card, fault, figures, link, mode, table } from "./parts.js";
import { answerOf, mayAct, mayRead, state } from "./state.js";

const objectPath = (name) => "rules" + query({ name });
const topPath = (name) => "top" + query({ rule: name, limit: "20" });

function present() {
  const name = state.route.name;
  return state.live?.rules.find((r) => r.name === name) ?? { name, kind: ["fair_share", "throttle"].includes(name) ? name : "rule", mode: "", limits: [], passed: 0, refused: 0, would_refuse: 0, unknown: true };
}

export function series() {
  const r = present();
  return ["passed", "refused", "would_refuse"].map((what) => seriesOf(r, what));
}

export function reads() {
  const r = present();
  const own = r.kind === "rule" && mayRead() ? [{ path: objectPath(r.name), every: 30 }, { path: "trials", every: 2 }] : [];
  return [...own, { path: topPath(r.name), every: 5 }, { path: "mode", every: 5 }];
}

export function one() {
  const r = present();
  return [head(r), verdicts(r), h("div", { class: "columns even", key: "lists" }, r.kind === "rule" ? trials(r) : null, refusedKeys(r)), commands(r)];
}

function head(r) {
  const now = Date.parse(state.live.now);
  const object = answerOf(objectPath(r.name));
  const overrides = (answerOf("mode").value?.modes ?? []).filter((m) => !m.rule || m.rule === r.name);
  const origin = object.value?.origin === "source" ? "from the source, revision " + object.value.revision : object.value?.origin === "file" ? "from the file" : "";
  const shadow = r.mode.startsWith("shadow");
  return h("section", { class: "card", key: "head", "aria-label": "Rule" },
    h("header", null, h("h1", null, (r.kind === "rule" ? "Rule " : "") + nameOf(r)), r.mode && mode(r.mode), r.differs && badge("warning", "instances differ"), h("span", { class: "quiet grow" }, origin), act.modeButtons(r.name, r.mode)),
    r.unknown && h("p", null, "The instance shows only the rules with the most refusals: this one is not among them, or does not exist."),
    overrides.map((m) => h("p", { key: m.rule + m.since }, badge("warning", m.mode + (m.percent ? " " + m.percent + " %" : "")), " set " + (m.by ? "by " + m.by + " " : "") + ago(m.since, now) + " ago" + (m.until ? ", ends " + new Date(m.until).toLocaleTimeString() : "") + (m.rule ? "" : ", for everything"))),
    figures([
      { label: "Limit", value: r.limits?.[0] ? clip(r.limits[0], 24) : "–", rest: r.limits?.length > 1 ? r.limits.slice(1, 4).join(", ") : "" },
      { label: shadow ? "Would refuse" : "Refuses", value: number(shadow ? r.would_refuse : r.refused), unit: "/s", rest: percent(shadow ? r.would_refuse : r.refused, shadow ? r.passed : r.passed + r.refused) },
      { label: "Passes", value: number(r.passed), unit: "/s" }, { label: "Since", value: r.since ? ago(r.since, now) : "–" },
    ]),
    object.value?.text && h("pre", { tabindex: 0, "aria-label": "Text of the rule" }, object.value.text));
}

function verdicts(r) {
  return chart({
    id: "rule", title: "Passed above the line, refused below", up: [{ name: seriesOf(r, "passed"), label: "Passed", look: "served" }], down: [{ name: seriesOf(r, "refused"), label: "Refused", look: "rules" }],
    lines: [{ name: seriesOf(r, "would_refuse"), label: "Would be refused (shadow)", look: "line-shadow", sign: -1, stacked: true }], marks: marks(state.live), note: changes(state.live), height: 210,
  });
}

function trials(r) {
  const entry = answerOf("trials");
  const own = (entry.value?.trials ?? []).filter((t) => t.rule === r.name);
  const start = mayAct() && entry.status !== 404 && act.button("Try other limits…", () => act.tryLimits(r.name, (r.limits ?? []).join(", ")), { id: "try" });
  const rows = own.flatMap((t, i) => [...(i === 0 ? [{ key: "now", cells: [h("code", null, (t.present.limits ?? r.limits).join(", ")), "now", number(t.present.refused_per_second), percent(t.present.refused, t.present.decided), "", ""] }] : []), {
    key: t.name, cells: [h("code", null, t.limits.join(", ")), t.paused ? badge("warning", "paused") : ago(t.since, Date.parse(entry.value.now)), number(t.tried.refused_per_second), percent(t.tried.refused, t.tried.decided),
      number(t.present.refused_per_second - t.tried.refused_per_second), act.button("End…", () => act.endTrial(t), { "aria-label": "End the trial " + t.name })],
  }]);
  return card("What if the limits were different?", { key: "trials", aside: start }, mayRead() ? fault(entry.status === 404 ? { error: "" } : entry) : null,
    table("trials", [{ label: "Limits", narrow: true }, { label: "For" }, { label: "Would refuse/s", number: true, narrow: true }, { label: "Part", number: true, narrow: true }, { label: "More load/s", number: true }, { label: "Action", narrow: true }], rows,
      "A trial counts what other limits would refuse on the present traffic, without refusing anything."),
    rows.length > 0 && h("p", { class: "quiet" }, "Measured on the real traffic since the trial began. Clients may send other requests when they are not refused."));
}

function refusedKeys(r) {
  const entry = answerOf(topPath(r.name));
  const all = entry.value?.keys ?? [];
  return card("Refused keys", { key: "keys" }, entry.status !== 404 && fault(entry), table("rule-keys", [{ label: "Key", narrow: true, break: true }, { label: "Refusals", number: true, narrow: true }, { label: "More", narrow: true, still: true }], all.map((k) => ({
    key: k.key, cells: [h("code", null, clip(keyText(k.key) || "(no key)", 60)), number(k.refusals),
      [link(route("why", "", { rule: r.name, key: k.key }), "Why?", { "aria-label": "Why is " + clip(keyText(k.key), 60) + " refused?" }), r.kind === "rule" && mayRead() && [" · ", link(keyRoute(r.name, k.key), "Key", { "aria-label": "Key " + clip(keyText(k.key), 60) + ": its counters" })]]],
  })), "No key has been refused in the last minutes."));
}

function commands(r) {
  const name = quote(r.name);
  const lines = ["headgate ctl top " + name, ...(r.kind === "rule" ? ["headgate ctl trial start " + name + " LIMIT"] : []), "headgate ctl mode shadow " + name + " --for 30m --reason TEXT", "headgate ctl mode file " + name];
  return card("The same in a terminal", { key: "commands" }, h("pre", { tabindex: 0, "aria-label": "Commands" }, lines.join("\n")));
}

function quote(text) {
  return /^[\w.@:/-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
}
