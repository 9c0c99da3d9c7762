// What an operator can do. Each action is a dialog with the effect, a reason and, where the API has one, a check before. Each answer offers
// the undo.

import { call, query } from "./api.js";
import { h } from "./dom.js";
import { clip, number, percent } from "./format.js";
import { keyText } from "./logic.js";
import { answerOf, changed, load, mayAct, soon, state } from "./state.js";

/**
 * Opens a dialog. fields: {name, label, value, type, options, required}. check, if there is one, runs before and when a field changes, and gives
 * a text. run does it, and gives {text, undo}: undo is another action like this one without fields, or nothing.
 */
export function ask({ title, effect, fields = [], verb, check, run }) {
  const values = Object.fromEntries(fields.map((f) => [f.name, f.value ?? ""]));
  const d = { checked: "", fault: "", busy: false, number: 0 };
  const checking = async () => {
    if (!check) return;
    const mine = ++d.number;
    try {
      const text = await check(values);
      if (mine !== d.number) return;
      Object.assign(d, { checked: text, fault: "" });
    } catch (error) {
      if (mine !== d.number) return;
      Object.assign(d, { checked: "", fault: error.message });
    }
    changed();
  };
  const send = async (e) => {
    e.preventDefault();
    if (d.busy) return;
    d.busy = true;
    changed();
    try {
      const done = await run(values);
      state.dialog = null;
      tell(done);
    } catch (error) {
      d.fault = error.message;
    }
    d.busy = false;
    changed();
    soon(0);
  };
  state.dialog = { draw: () => drawing({ title, effect, fields, verb, values, d, checking, send }) };
  checking();
  changed();
}

function drawing({ title, effect, fields, verb, values, d, checking, send }) {
  return h("dialog", { key: "dialog", "aria-labelledby": "dialog-title", made: (node) => node.showModal(), gone: (node) => node.close(), onclose: shut },
    h("form", { onsubmit: send }, h("h2", { id: "dialog-title" }, title), h("p", null, effect), fields.map((f) => field(f, values, checking)),
      d.checked && h("p", { class: "checked" }, d.checked), d.fault && h("p", { class: "problem", role: "alert" }, d.fault),
      h("div", { class: "actions" }, h("button", { type: "button", onclick: shut }, "Cancel"), h("button", { type: "submit", class: "main", disabled: d.busy }, verb))));
}

function field(f, values, checking) {
  const set = (e) => { values[f.name] = e.target.value; };
  return h("label", { class: "field", key: f.name }, h("span", null, f.label), f.options
    ? h("select", { id: "field-" + f.name, onchange: (e) => { set(e); checking(); } }, f.options.map(([value, text]) => h("option", { key: value, value, selected: value === values[f.name] }, text)))
    : h("input", { id: "field-" + f.name, type: "text", value: values[f.name], required: f.required ?? false, maxlength: 1024, autocomplete: "off", oninput: set, onfocus: (e) => e.target.select(), onchange: () => { if (f.name !== "reason") checking(); } }));
}

function shut() {
  if (!state.dialog) return;
  state.dialog = null;
  changed();
  soon(0);
}

let leaving = 0;

// tell shows what was done, with its undo, for a minute.
function tell({ text, undo }) {
  clearTimeout(leaving);
  state.notice = { level: "good", text, undo: undo && (() => { state.notice = null; ask(undo); }) };
  leaving = setTimeout(() => { state.notice = null; changed(); }, 60_000);
}

const reason = { name: "reason", label: "Reason (for the record)" };
const times = ["10m", "30m", "1h", "4h", "24h"].map((t) => [t, t]);

function button(label, action, props) {
  return mayAct() && h("button", { type: "button", class: "small", onclick: () => ask(action()), ...props }, label);
}

/** Lifts a ban of the list. */
export function liftButton(b) {
  const name = clip(keyText(b.key), 60);
  return button("Lift…", () => ({
    title: "Lift the ban of " + name, effect: "Rule " + b.rule + " then decides on the key again.", fields: [reason], verb: "Lift",
    run: async (v) => {
      await call("DELETE", "bans/" + encodeURIComponent(b.id) + query({ reason: v.reason }));
      await load("bans");
      return { text: "The ban of " + name + " is lifted." };
    },
  }), { "aria-label": "Lift the ban of " + name });
}

/** Reset, ban and unban of one key. order names the key for the API, and again reads it anew. */
export function keyButtons(order, k, again) {
  if (!mayAct()) return null;
  const name = clip(keyText(k.key), 60);
  return h("div", { class: "actions" }, button("Other limits for a time…", () => raise(order, name, k.limits.map((l) => l.limit).join(", "), again)), button("Reset…", () => resetKey(order, name, again)), !k.ban && button("Ban…", () => banKey(order, name, again)),
    k.ban && button("Lift the ban…", () => unbanKey(order, name, again)));
}

/** Gives the first value of a key other limits for a time. */
export function raise(order, name, limits, again) {
  const body = (v) => ({ rule: order.rule, value: order.values[0], limits: v.limits.split(",").map((l) => l.trim()).filter(Boolean), for: v.for });
  return {
    title: "Other limits for " + name, effect: "In rule " + order.rule + ", all keys with this first value get the limits until the time has passed.", verb: "Set the limits",
    fields: [{ name: "limits", label: "Limits, with commas", value: limits, required: true }, { name: "for", label: "For", value: "1h", options: times }, { ...reason, required: true }],
    check: async (v) => {
      const c = await call("POST", "key/limit", { ...body(v), dry_run: true });
      return ["Now: " + ((c.before ?? []).join(", ") || "none") + ".", ...(c.notes ?? [])].join("\n");
    },
    run: async (v) => {
      const c = await call("POST", "key/limit", { ...body(v), reason: v.reason });
      await again?.();
      await load("key/limits");
      return { text: name + " has " + (c.after ?? []).join(", ") + " for " + v.for + (c.everywhere ? " in all instances." : " in this instance."), undo: endRaise(order.rule, order.values[0], again) };
    },
  };
}

/** Ends the limits that raise has set. */
export function endRaise(rule, value, again) {
  return {
    title: "End the limits of " + clip(value, 60), effect: "The limits of rule " + rule + " apply again.", fields: [reason], verb: "End",
    run: async (v) => {
      await call("POST", "key/limit", { rule, value, end: true, reason: v.reason });
      await again?.();
      await load("key/limits");
      return { text: clip(value, 60) + " has the limits of rule " + rule + " again." };
    },
  };
}

/** Resets a key. */
export function resetKey(order, name, again) {
  return {
    title: "Reset " + name, effect: "The key gets all its units back, in rule " + order.rule + ".", fields: [reason], verb: "Reset",
    check: async () => usedOf(await call("POST", "key/reset", { ...order, dry_run: true })),
    run: async (v) => {
      const was = await call("POST", "key/reset", { ...order, reason: v.reason });
      await again?.();
      return { text: name + " is reset. " + usedOf(was) };
    },
  };
}

function usedOf(k) {
  const used = k.limits.map((l) => number(l.used) + " of " + l.limit).join(", ");
  return (used ? "Used before: " + used + ". " : "") + (k.shared ? "All instances with this store are changed." : "This instance alone is changed.");
}

/** Bans a key for a time. */
export function banKey(order, name, again) {
  return {
    title: "Ban " + name, effect: "Rule " + order.rule + " refuses the key until the ban ends.", fields: [{ name: "for", label: "For", value: "1h", options: times }, { ...reason, required: true }], verb: "Ban",
    check: async (v) => usedOf(await call("POST", "key/ban", { ...order, for: v.for, dry_run: true })),
    run: async (v) => {
      await call("POST", "key/ban", { ...order, for: v.for, reason: v.reason });
      await again?.();
      await load("bans");
      return { text: name + " is banned for " + v.for + ".", undo: unbanKey(order, name, again) };
    },
  };
}

function unbanKey(order, name, again) {
  return {
    title: "Lift the ban of " + name, effect: "Rule " + order.rule + " then decides on the key again.", fields: [reason], verb: "Lift",
    run: async (v) => {
      await call("POST", "key/unban", { ...order, reason: v.reason });
      await again?.();
      await load("bans");
      return { text: "The ban of " + name + " is lifted." };
    },
  };
}

/** Turns a rule or a stage to another mode for a time; name "" is everything. */
export function turn(name, to) {
  const what = name ? name.replaceAll("_", " ") : "everything";
  const rules = name ? { rules: [name] } : {};
  const fields = [{ name: "for", label: "For", value: "30m", options: times }];
  if (to === "enforce") fields.push({ name: "percent", label: "Part of the keys", value: "100", options: ["1", "5", "10", "25", "50", "100"].map((p) => [p, p + " %"]) });
  return {
    title: "Turn " + what + " to " + to, verb: "Turn to " + to, fields: [...fields, reason],
    effect: to === "shadow" ? "Requests over the limits then pass, and are counted as refusals that would be. The file's mode comes back at the end." : "Requests over the limits are then refused. The file's mode comes back at the end.",
    run: async (v) => {
      const percentage = to === "enforce" && v.percent !== "100" ? { percent: Number(v.percent) } : {};
      const got = await call("POST", "mode", { mode: to, ...rules, for: v.for, ...percentage, reason: v.reason });
      await load("mode");
      return { text: what + " is in mode " + to + " for " + v.for + "." + (got.behind ? " Other instances follow." : ""), undo: back(name) };
    },
  };
}

/** Ends what turn has set. */
export function back(name) {
  const what = name ? name.replaceAll("_", " ") : "everything";
  return {
    title: "Turn " + what + " back", effect: "The mode of the configuration is in effect again.", fields: [reason], verb: "Turn back",
    run: async (v) => {
      await call("POST", "mode", { mode: "file", ...(name ? { rules: [name] } : {}), reason: v.reason });
      await load("mode");
      return { text: what + " is in the mode of the configuration." };
    },
  };
}

/** Starts a trial of other limits. */
export function tryLimits(name, limits) {
  const order = (v) => ({ rule: name, limits: v.limits.split(",").map((l) => l.trim()).filter(Boolean), for: v.for });
  return {
    title: "Try other limits of " + name, effect: "A trial counts what other limits would refuse on the present traffic. No request is refused for it.", verb: "Start the trial",
    fields: [{ name: "limits", label: "Limits, with commas", value: limits, required: true }, { name: "for", label: "For", value: "10m", options: times }, reason],
    check: async (v) => {
      const t = await call("POST", "trials", { ...order(v), dry_run: true });
      return [(t.leaves_out?.length ? "The trial does without " + t.leaves_out.join(", ") + "." : ""), ...(t.notes ?? [])].filter(Boolean).join("\n");
    },
    run: async (v) => {
      const t = await call("POST", "trials", { ...order(v), reason: v.reason });
      await load("trials");
      return { text: "The trial " + t.name + " has begun. Its figures are on this page.", undo: endTrial(t) };
    },
  };
}

/** Ends a trial. */
export function endTrial(t) {
  return {
    title: "End the trial " + t.name, effect: "The figures of the trial go with it.", fields: [], verb: "End",
    run: async () => {
      const last = await call("DELETE", "trials/" + encodeURIComponent(t.name));
      await load("trials");
      const tried = last.tried ?? {};
      return { text: "The trial has ended: " + (tried.limits ?? t.limits).join(", ") + " would have refused " + percent(tried.refused ?? 0, tried.decided ?? 0) + " of " + number(tried.decided ?? 0) + " requests." };
    },
  };
}

/** Reads the configuration again. */
export function reload() {
  return button("Reload…", () => ({
    title: "Reload the configuration", effect: "This instance reads its files again. With a fault, the present configuration stays in effect.", verb: "Reload",
    run: async () => {
      const s = await call("POST", "reload");
      return { text: "Reloaded." + (s.waiting_for_restart?.length ? " These settings wait for a restart: " + s.waiting_for_restart.join(", ") + "." : "") };
    },
  }));
}

/** The buttons for the mode of a rule or a stage; name "" is everything. */
export function modeButtons(name, mode) {
  if (!mayAct()) return null;
  const shadow = mode.startsWith("shadow");
  const set = (answerOf("mode").value?.modes ?? []).some((m) => m.rule === name);
  return h("div", { class: "actions" }, !shadow && button("Turn to shadow…", () => turn(name, "shadow")), shadow && button("Enforce…", () => turn(name, "enforce")),
    set && button("Turn back…", () => back(name), { id: "turn-back" }));
}

export { button };
