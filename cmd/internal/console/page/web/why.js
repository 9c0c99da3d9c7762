// Why a request is refused: the steps in the order of decision, each with its live state.

import * as act from "./actions.js";
import { call, query } from "./api.js";
import { chart } from "./chart.js";
import { h } from "./dom.js";
import { ago, clip, duration, number } from "./format.js";
import { keyParts, keyText, route } from "./logic.js";
import { badge, card, link, table } from "./parts.js";
import { changed, mayAct, mayRead, state } from "./state.js";

const form = { who: "", method: "GET", path: "/", host: "", address: "", headers: "", id: "", from: null };
const result = { answer: null, error: "", refusals: null, busy: false };

export function why() {
  const q = state.route.query;
  if (form.from !== q) follow(q);
  return [ask(), result.error && h("section", { class: "card", key: "fault", "aria-label": "Fault" }, h("p", { class: "problem", role: "alert" }, result.error)), result.refusals && refusals(), result.answer && verdict(result.answer), result.answer && h("div", { class: client() ? "columns" : "", key: "steps" }, steps(result.answer), client() && chart({
    id: "client", title: "Units of " + clip(form.who, 40), up: [{ name: "client." + form.who + ".admitted", label: "Admitted", look: "served" }],
    down: [{ name: "client." + form.who + ".refused", label: "Refused", look: "fair_share" }], height: 200,
  }))];
}

// client is the client of fair share that the question is about.
function client() {
  return (state.live?.clients ?? []).some((c) => c.name === form.who);
}

export function series() {
  return client() ? ["admitted", "refused"].map((what) => "client." + form.who + "." + what) : [];
}

// follow fills the form from a link, and sends it. A link to a refused key has the rule and the key's parts: they become the fields that the
// rule reads.
function follow(q) {
  Object.assign(form, { from: q, who: q.get("who") ?? "", method: q.get("method") || "GET", path: q.get("path") || "/", host: q.get("host") ?? "", address: q.get("address") ?? "", headers: q.get("headers") ?? "", id: q.get("id") ?? "" });
  Object.assign(result, { answer: null, error: "", refusals: null });
  const headers = [];
  for (const { part, value } of q.get("key") ? keyParts(q.get("key")) : []) {
    if (part.startsWith("header:")) headers.push(part.slice("header:".length) + ": " + value);
    else if (part.startsWith("cookie:")) headers.push("Cookie: " + part.slice("cookie:".length) + "=" + value);
    else if (part === "ip" || part === "xff_ip" || part === "user_ip") form.address = value;
    else if (part === "path") form.path = value;
    else if (part === "method") form.method = value;
    else if (part === "host") form.host = value;
    else form.who = value;
  }
  if (headers.length) form.headers = headers.join("\n");
  if (!mayRead()) result.error = "Explaining a request needs the scope administer.";
  else if (q.get("rule") || form.id) readRefusals({ rule: q.get("rule"), key: q.get("key"), request_id: form.id });
  if (mayRead() && [...q.keys()].some((k) => k !== "id")) explain();
}

// readRefusals finds the last refusals, and the request of the newest one. A missing call is no fault: an instance may keep none.
async function readRefusals(of) {
  try {
    result.refusals = await call("GET", "refusals" + query({ ...of, limit: 20 }));
    const last = result.refusals.refusals?.[0];
    if (last?.path && form.path === "/") {
      Object.assign(form, { method: last.method || "GET", path: last.path, host: last.host ?? "" });
      await explain();
    }
  } catch (error) {
    if (error.status !== 404 && error.status !== 400) result.error = error.message;
    else if (of.request_id) result.error = error.message;
  }
  changed();
}

async function explain() {
  const mine = form.from;
  result.busy = true;
  changed();
  try {
    const headers = {};
    for (const line of form.headers.split("\n")) {
      const at = line.indexOf(":");
      if (at > 0) (headers[line.slice(0, at).trim()] ??= []).push(line.slice(at + 1).trim());
    }
    const answer = await call("POST", "explain", { method: form.method, path: form.path, host: form.host, address: form.address, customer: form.who, headers });
    if (mine === form.from) Object.assign(result, { answer, error: "" });
  } catch (error) {
    if (mine === form.from) Object.assign(result, { answer: null, error: error.message });
  }
  result.busy = false;
  changed();
}

function ask() {
  const text = (name, label, props) => h("label", { class: "field" }, h("span", null, label), h("input", { id: "why-" + name, value: form[name], autocomplete: "off", spellcheck: "false", oninput: (e) => { form[name] = e.target.value; }, ...props }));
  const send = (e) => {
    e.preventDefault();
    location.hash = route("why", "", { who: form.who, method: form.method, path: form.path, host: form.host, address: form.address, headers: form.headers, id: form.id });
    if (form.from === state.route.query) explain();
  };
  return h("section", { class: "card", key: "form", "aria-label": "Request" }, h("header", null, h("h1", null, "Why is this request refused?")),
    h("form", { onsubmit: send }, h("div", { class: "fields" }, text("who", "Client or customer"), text("method", "Method", { list: "methods" }), text("path", "Path"), text("address", "Address of the client"), text("host", "Host"), text("id", "or request id"),
      h("datalist", { id: "methods" }, ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].map((m) => h("option", { key: m, value: m })))),
    h("details", { open: form.headers !== "" }, h("summary", null, "Header fields"), h("textarea", { id: "why-headers", "aria-label": "Header fields, one a line", rows: 3, value: form.headers, placeholder: "X-Client-Id: acme", oninput: (e) => { form.headers = e.target.value; } })),
    h("div", { class: "actions" }, h("button", { type: "submit", class: "main", disabled: result.busy }, "Explain"), h("span", { class: "quiet" }, "Nothing is counted for the question."))));
}

const verdicts = { allow: ["good", "passes"], wait: ["warning", "waits"], deny: ["warning", "refused"], invalid: ["fault", "invalid"] };

function verdict(a) {
  return h("section", { class: "card", key: "verdict", "aria-label": "Verdict" }, h("div", { class: "said" }, badge(...(verdicts[a.verdict] ?? ["note", a.verdict])), h("h2", { class: "sentence", id: "verdict" }, a.sentence)),
    h("p", { class: "quiet" }, "By the counters of " + (a.instance ?? state.live.instance) + " at " + new Date(a.now ?? Date.now()).toLocaleTimeString() + ". Steps are in the order of decision."),
    a.unknown?.length > 0 && h("p", { class: "quiet" }, "Not known: " + a.unknown.join("; ") + "."));
}

function steps(a) {
  return h("section", { class: "card", key: "steps", "aria-label": "Steps" }, h("ol", { class: "steps" }, a.steps.map((s, i) => h("li", { key: i, class: s.decides ? "decides" : s.applies ? "" : "passed-by" },
    h("span", { class: "step", "aria-hidden": "true" }, String(i + 1)), h("div", null, step(s))))));
}

const kinds = { request: "Request", exempt: "Exemption", fair_share: "Fair share", ban: "Ban", rule: "Rule", quota: "Quota", throttle: "Throttle", service: "Service" };

function step(s) {
  const name = s.name && ["rule", "ban", "quota"].includes(s.kind) ? link(route("rule", s.name), s.name) : s.name;
  const level = !s.applies ? (s.kind === "ban" ? ["good", "none"] : ["note", "does not apply"]) : s.verdict === "deny" ? [s.mode?.startsWith("shadow") ? "note" : "warning", s.mode?.startsWith("shadow") ? "would refuse" : "refuses"] : s.verdict === "wait" ? ["warning", "waits"] : ["good", "passes"];
  return [
    h("h3", null, kinds[s.kind] ?? s.kind, name && s.name !== s.kind && [" ", name], " ", !["service", "request"].includes(s.kind) && badge(...level), s.mode && s.mode !== "enforce" && [" ", badge("note", s.mode)]),
    h("p", null, s.text),
    s.missed?.length > 1 && h("ul", { class: "missed" }, s.missed.map((m) => h("li", { key: m }, m))),
    s.key && h("p", { class: "quiet" }, "Counts ", h("code", null, clip(s.key, 200)), s.cost > 1 && ", cost " + s.cost),
    s.limits?.length > 0 && limits(s),
    s.in_flight && h("p", { class: "quiet" }, "In flight: " + s.in_flight.used + " of " + s.in_flight.limit),
    s.ban && h("p", { class: "quiet" }, "Banned until " + new Date(s.ban.until).toLocaleTimeString() + (s.ban.why ? ": " + clip(s.ban.why, 200) : "")),
    s.share && h("p", { class: "quiet" }, "Share " + number(s.share.size) + " of " + number(s.share.capacity) + " units in " + duration(s.share.cycle_seconds) + ", default " + number(s.share.default) + ", admitted " + number(s.share.admitted) + ", refused " + number(s.share.refused) + "."),
    s.customer && h("p", { class: "quiet" }, "Customer " + s.customer.name + ", plan " + s.customer.plan + (s.customer.entry ? "" : " (the default plan)") + (s.customer.note ? ", " + s.customer.note : "") + "."),
    s.queue && h("p", { class: "quiet" }, s.queue.in_flight + (s.queue.concurrency ? " of " + s.queue.concurrency : "") + " at the service, " + s.queue.queued + " waiting, class " + s.queue.class.replaceAll("_", " ") + "."),
    s.retry_seconds > 0 && h("p", { class: "quiet" }, "May go on in " + duration(s.retry_seconds) + "."),
    s.unknown?.length > 0 && h("p", { class: "quiet" }, "Not known: " + s.unknown.join("; ") + "."),
    buttons(s),
    s.actions?.length > 0 && h("details", null, h("summary", null, "In a terminal"), h("pre", { tabindex: 0, "aria-label": "Commands" }, s.actions.map((x) => "# " + x.text + "\n" + x.command).join("\n"))),
  ];
}

function limits(s) {
  return h("ul", { class: "plain" }, s.limits.map((l) => h("li", { key: l.name + l.limit }, h("code", null, l.limit), " used " + number(l.used) + ", left " + number(l.remaining) + (l.remaining <= 0 ? (l.never ? ", none comes back" : ", the next in " + duration(l.next_seconds)) : ""))));
}

function buttons(s) {
  if (!mayAct() || !s.applies || !s.name || !["rule", "ban"].includes(s.kind)) return null;
  const order = { rule: s.name, values: s.key ? keyParts(s.key).map((p) => p.value) : [] };
  const name = clip(keyText(s.key), 60);
  const parts = s.key && keyParts(s.key)[0].part !== "";
  return h("div", { class: "actions" }, parts && s.limits?.length > 0 && act.button("Other limits for a time…", () => act.raise(order, name, s.limits.map((l) => l.limit).join(", "), explain)), parts && act.button("Reset the key…", () => act.resetKey(order, name, explain)), s.verdict === "deny" && act.button("Turn the rule to shadow…", () => act.turn(s.name, "shadow")),
    s.ban && act.liftButton({ id: s.ban.id, key: s.key, rule: s.name }));
}

function refusals() {
  const list = result.refusals.refusals ?? [];
  const now = Date.parse(result.refusals.now ?? state.live.now);
  return card("Last refusals", { key: "refusals" }, table("refusals", [{ label: "When", narrow: true }, { label: "Request", narrow: true, break: true }, { label: "Rule or stage", narrow: true, break: true }, { label: "Key", break: true }, { label: "Reason" }, { label: "Request id", break: true }, { label: "Instance" }],
    list.map((r, i) => ({ key: (r.request_id ?? "") + r.at + i, cells: [ago(r.at, now) + " ago", h("code", null, clip((r.method ?? "") + " " + (r.path ?? ""), 80)), clip(r.rule || r.stage || "", 40), h("code", null, clip(keyText(r.key), 60)), r.reason ?? "", h("code", null, clip(r.request_id, 60)), r.instance ?? ""] })),
    "No refusal of the last minutes fits."));
}
