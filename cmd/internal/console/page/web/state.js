// What the page knows, and the loop that keeps it up to date.

import { Refused, get, query } from "./api.js";
import { Tier, spans } from "./series.js";

const settings = "headgate-settings";

export const state = {
  live: null,
  me: { actions: false, scopes: [] },
  locked: false, // 401: the page asks for a token
  refusedToken: false,
  failure: null, // {since, text, retry}
  answered: 0, // when the last answer came, in milliseconds
  historyFault: "",
  paused: false,
  dialog: null,
  notice: null,
  span: "5m",
  theme: "auto",
  route: { view: "overview", name: "", query: new URLSearchParams() },
  tiers: Object.fromEntries(Object.entries(spans).map(([name, s]) => [name, new Tier(s.step, s.length)])),
  extra: {}, // answers that views read besides, by their path: {value, error, at}
  filters: {},
  orders: {}, // of tables whose rows must not move now
  charts: {},
};

let redraw = () => {};
let wanted = () => ({ series: [], sparks: [], reads: [] });

/** Starts the loop. draw paints the page; wants gives the series and the calls that the present view needs. */
export function begin(draw, wants) {
  redraw = draw;
  wanted = wants;
  restore();
  document.addEventListener("visibilitychange", () => soon(0));
  addEventListener("focus", () => soon(0));
  soon(0);
}

/** Paints the page at the next frame. */
let drawing = false;
export function changed() {
  if (drawing) return;
  drawing = true;
  // A hidden page gets no frames, and paints when it is seen again.
  requestAnimationFrame(() => {
    drawing = false;
    redraw();
  });
}

function restore() {
  try {
    const kept = JSON.parse(localStorage.getItem(settings) ?? "{}");
    if (kept.span in spans) state.span = kept.span;
    if (["auto", "light", "dark"].includes(kept.theme)) state.theme = kept.theme;
  } catch {
    // A browser without storage works with the defaults.
  }
}

/** Sets span or theme, and keeps it for the next visit. */
export function choose(name, value) {
  state[name] = value;
  try {
    localStorage.setItem(settings, JSON.stringify({ span: state.span, theme: state.theme }));
  } catch {
    // A browser without storage works with the defaults.
  }
  changed();
  soon(0);
}

let timer = 0;
let running = false;
let failures = 0;

/** Reads again after so many milliseconds. */
export function soon(delay) {
  clearTimeout(timer);
  timer = setTimeout(tick, delay);
}

/** Pauses the live update, or goes on. */
export function pause(on) {
  state.paused = on;
  changed();
  if (!on) soon(0);
}

// The poll interval is fixed here: a setting would let a page load an instance at will.
function interval() {
  if (failures > 0) return Math.min(15_000, 1000 * 2 ** (failures - 1));
  return document.hasFocus() ? 1000 : 2000;
}

async function tick() {
  if (running || document.hidden || state.locked || (state.paused && state.live)) return;
  running = true;
  try {
    if (!state.live) await whoAmI();
    const live = await get("live?limit=50");
    if (!live.totals) throw new Error("/api/v1/live has not answered with the state of an instance");
    accept(live);
    await history();
    await reads();
    failures = 0;
    state.failure = null;
  } catch (error) {
    fail(error);
  } finally {
    running = false;
    changed();
    if (!state.locked) soon(interval());
  }
}

async function whoAmI() {
  try {
    state.me = await get("me");
  } catch (error) {
    if (error.status !== 404) throw error;
  }
}

/** Whether the page offers what changes something. */
export function mayAct() {
  return Boolean(state.me.actions && state.me.scopes?.includes("administer"));
}

/** Whether the page may read what needs the scope administer, such as keys and usage. */
export function mayRead() {
  return !state.me.scopes?.length || state.me.scopes.includes("administer");
}

function accept(live) {
  const before = state.live;
  // A ring begins anew when the instance does, or when its clock steps back.
  if (before && (before.started !== live.started || Date.parse(live.now) < Date.parse(before.now) - 5000)) {
    for (const tier of Object.values(state.tiers)) tier.clear();
  }
  state.live = live;
  state.answered = Date.now();
  state.refusedToken = false;
}

function fail(error) {
  if (error instanceof Refused && error.status === 401) {
    state.locked = true;
    state.refusedToken = Boolean(sessionStorage.getItem("headgate-token"));
    return;
  }
  failures++;
  const text = error.name === "TimeoutError" ? "no answer within 10 s" : error instanceof TypeError ? "the connection failed" : error.message;
  state.failure = { since: state.failure?.since ?? (state.answered || Date.now()), text, status: error.status, retry: Date.now() + interval() };
}

const lastHistory = {};

/** The most names that one call of the history may have. */
const mostNames = 50;

async function history() {
  const { series, sparks } = wanted();
  if (state.span !== "5m") await historyOf(state.span, series);
  await historyOf("5m", state.span === "5m" ? [...series, ...sparks] : sparks);
}

async function historyOf(name, series) {
  const span = spans[name];
  const tier = state.tiers[name];
  const names = [...new Set(series)].slice(0, 4 * mostNames);
  const fresh = names.filter((n) => !tier.has(n));
  if (names.length === 0 || (fresh.length === 0 && Date.now() - (lastHistory[name] ?? 0) < span.every * 1000 - 300)) return;
  lastHistory[name] = Date.now();
  const now = Math.floor(Date.parse(state.live.now) / 1000);
  const known = names.filter((n) => tier.has(n));
  try {
    const all = now - span.step * span.length;
    for (const list of [fresh, known]) {
      for (let i = 0; i < list.length; i += mostNames) {
        const part = list.slice(i, i + mostNames);
        await read(tier, span, part, Math.max(all, list === fresh ? all : tier.since(part)));
      }
    }
    state.historyFault = "";
  } catch (error) {
    if (error.status !== 400 && error.status !== 404) throw error;
    state.historyFault = error.message;
  }
  tier.keep(new Set(names));
}

async function read(tier, span, list, since) {
  const names = list.map((name) => "&series=" + encodeURIComponent(name)).join("");
  const answer = await get("history" + query({ tier: span.tier, since }) + names);
  for (const name of list) answer.series[name] ??= [];
  tier.add(answer);
}

// reads gets the other answers that the view shows, each at its own pace. One that fails says so in its card, and the page goes on.
async function reads() {
  const now = Date.now();
  // What an instance does not have, such as a source, is asked for once a minute.
  const pause = (r) => ([404, 409].includes(state.extra[r.path].status) ? Math.max(60, r.every) : r.every) * 1000;
  const due = wanted().reads.filter((r) => !state.extra[r.path] || now - state.extra[r.path].at >= pause(r));
  await Promise.all(due.map((r) => load(r.path)));
}

/** Reads a path now. */
export async function load(path) {
  const entry = { value: state.extra[path]?.value, error: "", at: Date.now() };
  try {
    entry.value = await get(path);
  } catch (error) {
    if (error.status === 401) throw error;
    entry.error = error.message;
    entry.status = error.status;
  }
  const paths = Object.keys(state.extra);
  if (paths.length > 50 && !(path in state.extra)) delete state.extra[paths[0]];
  state.extra[path] = entry;
  changed();
  return entry;
}

/** The last answer of a path that a view reads. */
export function answerOf(path) {
  return state.extra[path] ?? { value: undefined, error: "", at: 0 };
}
