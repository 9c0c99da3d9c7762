// The shell of the page: the bar, the views, keys, and the form for the token.

import * as act from "./actions.js";
import { token } from "./api.js";
import { patterns } from "./chart.js";
import * as clientsView from "./clients.js";
import { h, paint } from "./dom.js";
import { clock, duration } from "./format.js";
import { instances, reads as instanceReads } from "./instances.js";
import * as keysView from "./keys.js";
import { health, parseQuestion, parseRoute, route } from "./logic.js";
import { overview, reads as overviewReads, series as overviewSeries, sparkSeries } from "./overview.js";
import { badge } from "./parts.js";
import * as quotasView from "./quotas.js";
import * as ruleView from "./rule.js";
import { spans } from "./series.js";
import { begin, changed, choose, pause, soon, state } from "./state.js";
import * as throttleView from "./throttle.js";
import { series as whySeries, why } from "./why.js";

const views = [
  { name: "overview", label: "Overview", draw: () => overview(act), series: overviewSeries, sparks: sparkSeries, reads: overviewReads },
  { name: "clients", label: "Clients", draw: clientsView.clients, series: clientsView.series, reads: clientsView.reads },
  { name: "keys", label: "Keys and bans", draw: keysView.keys, reads: keysView.reads },
  { name: "throttle", label: "Throttle", draw: throttleView.throttle, series: throttleView.series },
  { name: "instances", label: "Instances and stores", draw: () => instances(act), reads: instanceReads },
  { name: "quotas", label: "Quotas and leases", draw: quotasView.quotas, reads: quotasView.reads },
  { name: "why", label: "Why", draw: why, series: whySeries },
  { name: "rule", label: "Rule", hidden: true, draw: ruleView.one, series: ruleView.series, reads: ruleView.reads },
];

function viewOf(name) {
  return views.find((v) => v.name === name) ?? views[0];
}

function draw() {
  document.documentElement.dataset.theme = state.theme;
  const view = viewOf(state.route.view);
  document.title = (state.live ? health(state.live).text + " · " : "") + view.label + " · Headgate";
  paint(document.getElementById("app"), state.locked ? gate() : [patterns(), bar(), tabs(view), banner(), main(view), state.dialog?.draw()]);
}

function main(view) {
  if (!state.live) return h("main", { key: "main", id: "main" }, h("p", { class: "boot" }, state.failure ? "" : "Reading the state…"));
  // Other views than these begin with cards of one rank.
  const title = !["overview", "rule", "why"].includes(view.name) && h("h1", { class: "unseen", key: "title" }, view.label);
  return h("main", { key: "main", id: "main", class: "view-" + view.name }, title, view.draw());
}

function bar() {
  return h("header", { class: "top", key: "top" },
    h("a", { href: "#/overview", class: "logo" }, "Headgate"),
    state.live && h("a", { href: "#/instances", class: "state", "aria-label": "State: " + health(state.live).text }, badge(health(state.live).level, health(state.live).text)),
    h("form", { class: "ask", role: "search", onsubmit: ask },
      h("input", { id: "question", type: "search", "aria-label": "Why is a client refused?", placeholder: "Why is a client refused?  acme GET /v1/search  ( / )", autocomplete: "off", spellcheck: "false" }),
      h("button", { type: "submit", class: "main" }, "Why?")),
    h("div", { class: "tools" },
      select("span", "Span", Object.entries(spans).map(([value, s]) => [value, s.label])),
      h("button", { type: "button", id: "pause", "aria-pressed": String(state.paused), onclick: () => pause(!state.paused) }, state.paused ? "Go on" : "Pause"),
      select("theme", "Theme", [["auto", "auto"], ["light", "light"], ["dark", "dark"]])));
}

function select(name, label, options) {
  return h("label", null, h("span", null, label), h("select", { id: name, "aria-label": label, value: state[name], onchange: (e) => choose(name, e.target.value) },
    options.map(([value, text]) => h("option", { value, selected: state[name] === value }, text))));
}

function tabs(view) {
  return h("nav", { key: "tabs", "aria-label": "Views" }, views.filter((v) => !v.hidden).map((v, n) => h("a", {
    href: "#/" + v.name, key: v.name, "aria-current": v === view ? "page" : undefined, "aria-keyshortcuts": String(n + 1),
  }, v.label)));
}

function banner() {
  const { level, text, undo } = said();
  return h("div", { key: "banner", role: "status", class: "banner " + level + (text ? "" : " empty") }, text && h("p", null, h("span", null, text),
    undo && h("button", { type: "button", class: "small", id: "undo", onclick: undo }, "Undo…")));
}

// said is what the line under the tabs says: a failure first, then a pause, then what an action has done.
function said() {
  const f = state.failure;
  const host = location.host;
  if (f?.status) return { level: "fault", text: host + " answers " + f.status + ": " + f.text };
  if (f) {
    const next = duration(Math.max(1, Math.ceil((f.retry - Date.now()) / 1000)));
    return { level: "fault", text: "No answer from " + host + " since " + clock(f.since / 1000) + ": " + f.text + ". The next try is in " + next + "." };
  }
  if (state.notice) return state.notice;
  if (state.paused) return { level: "note", text: "Paused at " + clock(state.answered / 1000) + ". The space key goes on." };
  return { level: "", text: "" };
}

function gate() {
  return h("main", { class: "gate", key: "gate", id: "main" }, h("h1", null, "Headgate"),
    h("form", { class: "card", onsubmit: unlock }, h("h2", null, "Token"),
      h("p", null, "This listener asks for the token of a caller in server.callers. The page keeps the token until this tab is closed."),
      state.refusedToken && h("p", { class: "problem", role: "alert" }, "The token is not valid: " + "use one that headgate ctl token has made for a caller."),
      h("label", { class: "field" }, h("span", null, "Token"), h("input", { id: "token", type: "password", autocomplete: "off", required: true })),
      h("button", { type: "submit", class: "main" }, "Open")));
}

function unlock(e) {
  e.preventDefault();
  token.set(document.getElementById("token").value.trim());
  state.locked = false;
  changed();
  soon(0);
}

function ask(e) {
  e.preventDefault();
  const q = parseQuestion(document.getElementById("question").value);
  location.hash = route("why", "", { who: q.who, method: q.path ? q.method : "", path: q.path, address: q.address, id: q.id });
}

function navigate() {
  state.route = parseRoute(location.hash);
  changed();
  soon(0);
  requestAnimationFrame(() => document.querySelector("nav a[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" }));
}

const typing = "input, textarea, select, [contenteditable]";

function key(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || state.locked || state.dialog) return;
  if (e.key === "Escape" && e.target.id === "question") return e.target.blur();
  if (e.target.closest?.(typing)) return;
  const shown = views.filter((v) => !v.hidden);
  if (e.key === "/") {
    e.preventDefault();
    document.getElementById("question").focus();
  } else if (e.key === " " && !e.target.closest?.("button, a, summary")) {
    e.preventDefault();
    pause(!state.paused);
  } else if (/^[1-9]$/.test(e.key) && shown[e.key - 1]) {
    location.hash = "#/" + shown[e.key - 1].name;
  }
}

addEventListener("hashchange", navigate);
addEventListener("keydown", key);
state.route = parseRoute(location.hash);
begin(draw, () => {
  const view = viewOf(state.route.view);
  return { series: view.series?.() ?? [], sparks: view.sparks?.() ?? [], reads: view.reads?.() ?? [] };
});
changed();
