// Instances and stores: which one has a fault, and what they run.

import { h } from "./dom.js";
import { ago, clip, number, percent } from "./format.js";
import { route } from "./logic.js";
import { badge, card, fault, link, table } from "./parts.js";
import { answerOf, mayRead, state } from "./state.js";

export function reads() {
  return [{ path: "source", every: 10 }, ...(mayRead() ? [{ path: "actions", every: 5 }, { path: "audit?limit=20", every: 10 }] : [])];
}

export function instances(actions) {
  const live = state.live;
  return [fleet(live, actions), stores(live), faults(live), reloads(live), source(), acted(), audit()];
}

// rows gives the instances of a fleet, or the one that answers.
function rows(live) {
  if (live.instances?.length) return live.instances;
  return [{ name: live.instance, address: location.host, ok: true, seen: live.now, version: live.version, config: live.config, started: live.started,
    requests: live.totals.requests, refused: live.totals.refused }];
}

function fleet(live, actions) {
  const all = rows(live);
  const now = Date.parse(live.now);
  const digests = new Set(all.filter((i) => i.ok && i.config).map((i) => i.config));
  const away = all.filter((i) => !i.ok).length;
  const notes = [];
  if (away) notes.push("Sums are over " + (all.length - away) + " of " + all.length + " instances.");
  if (digests.size > 1) notes.push("Instances with different digests decide by different configurations.");
  if (!live.instances?.length) notes.push("Only this instance: admin.peers names the others.");
  return card(all.length === 1 ? "This instance" : all.length + " instances", { key: "fleet", aside: actions?.reload() },
    table("instances", [{ label: "Instance", narrow: true, break: true }, { label: "State", narrow: true }, { label: "Requests/s", number: true, narrow: true }, { label: "Refused", number: true },
      { label: "Configuration" }, { label: "Version" }, { label: "Up since" }, { label: "Address" }],
    all.map((i) => ({
      key: i.address || i.name, warn: !i.ok,
      cells: [h("b", null, i.name || i.address), i.ok ? badge(live.state === "draining" && i.name === live.instance ? "warning" : "good", i.name === live.instance ? live.state : "answers")
        : h("span", null, badge("fault", "no answer"), h("span", { class: "quiet block" }, clip(i.error, 100) + (i.seen ? ", last " + ago(i.seen, now) + " ago" : ""))),
      i.ok ? number(i.requests) : "–", i.ok ? percent(i.refused, i.requests) : "–",
      [h("code", null, clip(i.config, 12)), digests.size > 1 && i.ok && [" ", badge("warning", "differs")]], clip(i.version, 30),
      i.started ? ago(i.started, now) : "–", h("code", null, i.address)],
    })), ""),
    live.pending_restart?.length > 0 && h("p", null, badge("warning", "restart"), " Settings that take effect at a restart: ", h("code", null, live.pending_restart.join(", "))),
    h("p", { class: "quiet" }, notes.join(" ")));
}

function stores(live) {
  const now = Date.parse(live.now);
  const level = { closed: ["good", "used"], open: ["fault", "not used"], half_open: ["warning", "probed"] };
  return card("Stores", { key: "stores" }, table("stores", [{ label: "Store", narrow: true, break: true }, { label: "State", narrow: true }, { label: "Calls/s", number: true, narrow: true },
    { label: "Failed/s", number: true }, { label: "Last failure" }],
  (live.stores ?? []).map((s) => ({
    key: s.address, warn: s.state !== "closed",
    cells: [h("code", null, s.address), badge(...(level[s.state] ?? ["note", s.state])), number(s.calls), number(s.failed),
      s.last_error ? [clip(s.last_error, 160), h("span", { class: "quiet" }, " " + ago(s.last_error_at, now) + " ago")] : "–"],
  })), "The store is the memory of each instance."));
}

function faults(live) {
  if (!live.attention?.length) return null;
  return card("Everything that needs attention", { key: "faults" }, h("ul", { class: "attention" }, live.attention.map((a) => h("li", { key: a.about + a.name + a.instance + a.text },
    badge(a.level, a.level === "warning" ? "look" : a.level), h("span", null, (a.instance ? a.instance + ": " : "") + a.text)))),
  live.attention_total > live.attention.length && h("p", { class: "quiet" }, "and " + (live.attention_total - live.attention.length) + " more"));
}

function reloads(live) {
  if (!live.marks?.length) return null;
  return card("Last changes", { key: "marks" }, h("ul", { class: "plain" }, live.marks.map((m) => h("li", { key: m.at + m.text },
    h("time", { datetime: m.at }, new Date(m.at).toLocaleString()), " ", clip(m.text, 200), m.by && h("span", { class: "quiet" }, " by " + m.by)))));
}

function source() {
  const entry = answerOf("source");
  if (entry.status === 404 || !entry.value?.kind) return null;
  const s = entry.value;
  return card("Source of rules", { key: "source" }, h("p", null, badge(s.failure ? "fault" : s.state === "followed" ? "good" : "warning", s.state), " " + s.kind + " ",
    h("code", null, s.place), ", revision ", h("code", null, s.revision || "–"), ": " + s.rules + " rules, " + s.plans + " plans, " + s.customers + " customers."),
  s.failure && h("p", { class: "problem" }, s.failure),
  s.held_count > 0 && h("ul", { class: "plain" }, s.held.map((x) => h("li", { key: x.objects.join() + x.problem }, badge("warning", "held back"), " ", x.objects.join(", "), ": ", x.problem))));
}

function acted() {
  const list = answerOf("actions").value?.actions ?? [];
  if (!list.length) return null;
  return card("What operators did here", { key: "actions" }, table("acted", [{ label: "Time", narrow: true }, { label: "Caller" }, { label: "Action", narrow: true }, { label: "Object", narrow: true, break: true }, { label: "Reason" }, { label: "Undo in a terminal", break: true }],
    list.slice(0, 20).map((a, i) => ({ key: a.time + a.object + i, cells: [new Date(a.time).toLocaleTimeString(), a.caller || a.address || "–", a.action, h("code", null, clip(a.object, 100)), clip(a.reason, 120) || "–", a.undo ? h("code", null, clip(a.undo, 160)) : "–"] })), ""));
}

function audit() {
  const entry = answerOf("audit?limit=20");
  if (!entry.value && (!entry.error || entry.status === 404)) return null;
  if (entry.status === 409) return null; // Without a source, there are only the actions of this instance.
  return card("Records of the source", { key: "audit" }, fault(entry), table("audit", [{ label: "Time", narrow: true }, { label: "Caller" }, { label: "Action" }, { label: "Object", narrow: true, break: true },
    { label: "Reason" }], (entry.value?.records ?? []).map((r, i) => ({
    key: r.time + r.object + i, cells: [new Date(r.time).toLocaleString(), r.caller || r.address || "–", r.action, objectLink(r.object), clip(r.reason, 120) || "–"],
  })), "No record yet."));
}

function objectLink(object) {
  const name = object.startsWith("rules/") ? object.slice("rules/".length) : "";
  return name ? link(route("rule", name), object) : object;
}
