// Keys and bans: the most refused keys, one key with its counters, and what is banned.

import { call } from "./api.js";
import { h } from "./dom.js";
import { clip, duration, number, words } from "./format.js";
import { byTrouble, keyParts, keyText, nameOf, route } from "./logic.js";
import { badge, card, fault, link, table } from "./parts.js";
import { answerOf, changed, mayRead, state } from "./state.js";
import * as act from "./actions.js";

const topPath = () => "top?limit=100";
const form = { rule: "", values: [""], answer: null, error: "" };

export function reads() {
  return [{ path: topPath(), every: 5 }, { path: "bans", every: 2 }, ...(mayRead() ? [{ path: "key/limits", every: 5 }] : [])];
}

export function keys() {
  const q = state.route.query;
  if (q.get("rule") && form.from !== state.route.query) {
    Object.assign(form, { from: q, rule: q.get("rule"), values: q.getAll("value"), answer: null, error: "" });
    if (mayRead()) peek();
  }
  return [h("div", { class: "columns even", key: "lists" }, refused(), bans()), raised(), one()];
}

function refused() {
  const entry = answerOf(topPath());
  const all = entry.value?.keys ?? [];
  const text = (state.filters.key ?? "").toLowerCase();
  const rule = state.filters.rule ?? "";
  const rows = all.filter((k) => (!rule || k.rule === rule) && (!text || (k.rule + " " + k.key).toLowerCase().includes(text)));
  const since = entry.value ? new Date(entry.value.since).toLocaleTimeString() : "";
  return card("Most refused keys", null, fault(entry),
    h("div", { class: "fields" },
      h("label", { class: "field" }, h("span", null, "Filter"), h("input", { id: "filter-key", type: "search", value: state.filters.key ?? "", oninput: (e) => { state.filters.key = e.target.value; changed(); } })),
      h("label", { class: "field" }, h("span", null, "Rule"), h("select", { id: "filter-rule", onchange: (e) => { state.filters.rule = e.target.value; changed(); } },
        h("option", { value: "", selected: rule === "" }, "all"), [...new Set(all.map((k) => k.rule))].sort().map((r) => h("option", { key: r, value: r, selected: r === rule }, r))))),
    table("top", [{ label: "Key", narrow: true, break: true }, { label: "Rule", narrow: true }, { label: "Refusals", number: true, narrow: true }, { label: "At most too high", number: true }, { label: "Reason", narrow: true }],
      rows.slice(0, 100).map((k) => ({
        key: k.rule + "\n" + k.key,
        cells: [h("code", null, clip(keyText(k.key) || "(no key)", 60)), link(route("rule", k.rule), clip(words(k.rule), 40)), number(k.refusals), k.error ? number(k.error) : "0",
          link(route("why", "", { rule: k.rule, key: k.key }), "Why?", { "aria-label": "Why is " + clip(keyText(k.key), 60) + " refused by " + k.rule + "?" })],
      })), entry.error ? "" : all.length ? "No key matches the filter." : "No key has been refused in the last minutes."),
    since && h("p", { class: "quiet" }, "Since " + since + ", " + number(entry.value.total) + " refusals in all, those in shadow included."));
}

function bans() {
  const entry = answerOf("bans");
  const now = entry.value ? Date.parse(entry.value.now) + (Date.now() - entry.at) : 0;
  const list = entry.value?.bans ?? [];
  const rows = list.slice(0, 200).map((b) => {
    const left = (Date.parse(b.until) - now) / 1000;
    return {
      key: b.id, warn: !b.shadow,
      cells: [h("code", null, clip(keyText(b.key), 60)), link(route("rule", b.rule), clip(b.rule, 40)), left > 0 ? duration(Math.ceil(left)) : "ends",
        [b.operator && badge("note", "by an operator"), b.shadow && badge("note", "shadow"), b.reason && " " + clip(b.reason, 100)], act.liftButton(b)],
    };
  });
  return card("Bans", null, fault(entry), table("bans", [{ label: "Key", narrow: true, break: true }, { label: "Rule" }, { label: "Ends in", narrow: true, still: true }, { label: "Reason" }, { label: "Action", narrow: true }], rows, entry.error ? "" : "No key is banned."),
    (entry.value?.more || list.length > rows.length) && h("p", { class: "quiet" }, "The instance has more bans than the list."));
}

function raised() {
  const entry = answerOf("key/limits");
  const list = entry.value?.limits ?? [];
  if (!list.length) return null;
  const now = Date.parse(entry.value.now) + (Date.now() - entry.at);
  return card("Limits of single values for a time", null, table("raised", [{ label: "Value", narrow: true, break: true }, { label: "Rule" }, { label: "Limits", narrow: true }, { label: "Ends in", narrow: true, still: true }, { label: "Reason" }, { label: "Action", narrow: true }], list.map((l) => ({
    key: l.rule + "\n" + l.value, cells: [h("code", null, clip(l.value, 60)), link(route("rule", l.rule), clip(l.rule, 40)), h("code", null, l.limits.join(", ")), duration(Math.ceil((Date.parse(l.until) - now) / 1000)),
      [clip(l.reason, 80), l.by && h("span", { class: "quiet" }, " by " + clip(l.by, 40))], act.button("End…", () => act.endRaise(l.rule, l.value), { "aria-label": "End the limits of " + clip(l.value, 60) })],
  })), ""));
}

function one() {
  const rules = byTrouble(state.live.rules).filter((r) => r.kind === "rule");
  if (!mayRead()) return card("One key", null, h("p", { class: "quiet" }, "Reading a key needs the scope administer."));
  return card("One key", null, h("form", { class: "fields", onsubmit: (e) => { e.preventDefault(); peek(); } },
    h("label", { class: "field" }, h("span", null, "Rule"), h("input", { id: "key-rule", list: "rule-names", value: form.rule, required: true, autocomplete: "off", oninput: (e) => { form.rule = e.target.value; } }),
      h("datalist", { id: "rule-names" }, rules.map((r) => h("option", { key: r.name, value: r.name }, nameOf(r))))),
    h("label", { class: "field" }, h("span", null, "Values of the key's parts, a line each"), h("textarea", { id: "key-values", rows: 2, value: form.values.join("\n"), oninput: (e) => { form.values = e.target.value.split("\n"); } })),
    h("div", { class: "actions" }, h("button", { type: "submit", class: "main" }, "Look"))),
  form.error && h("p", { class: "problem", role: "alert" }, form.error), form.answer && counters(form.answer));
}

function order() {
  return { rule: form.rule, values: form.values.map((v) => v) };
}

async function peek() {
  try {
    form.answer = await call("POST", "key/get", order());
    form.error = "";
  } catch (error) {
    form.answer = null;
    form.error = error.message;
  }
  changed();
}

function counters(k) {
  return h("div", { class: "answer" },
    h("p", null, h("code", null, clip(keyText(k.key), 120)), " of rule ", link(route("rule", k.rule), k.rule), ", ", badge(k.mode === "enforce" ? "good" : "note", k.mode), " ",
      k.ban ? badge("fault", "banned for " + duration((Date.parse(k.ban.until) - Date.parse(k.now)) / 1000)) : badge("good", "not banned")),
    table("limits", [{ label: "Limit", narrow: true }, { label: "Used", number: true, narrow: true }, { label: "Left", number: true, narrow: true }, { label: "Next unit in", narrow: true }, { label: "All units back in" }, { label: "Algorithm" }],
      k.limits.map((l) => ({ key: l.name + l.limit, warn: l.remaining <= 0, cells: [h("code", null, l.limit), number(l.used), number(l.remaining), l.never ? "never" : duration(l.next_seconds), l.never ? "never" : duration(l.full_seconds), l.algorithm.replaceAll("_", " ")] })), "The rule has no limit of units."),
    k.in_flight && h("p", null, "In flight: " + k.in_flight.used + " of " + k.in_flight.limit),
    !k.shared && h("p", { class: "quiet" }, "The store is the memory of this instance: other instances count for themselves."),
    act.keyButtons(order(), k, peek));
}

/** A link to the counters of a key. */
export function keyRoute(rule, key) {
  const q = new URLSearchParams([["rule", rule], ...keyParts(key).map((p) => ["value", p.value])]);
  return "#/keys?" + q;
}
