// Clients and shares: who borrows, who lends, who is refused.

import { chart } from "./chart.js";
import { h } from "./dom.js";
import { ago, clip, number } from "./format.js";
import { route } from "./logic.js";
import { balance, bar, card, link, table } from "./parts.js";
import { answerOf, state } from "./state.js";

/** The clients with an area of their own. The others are one area. */
const most = 7;

// A client keeps its colour and its place while the page is open: colours by rank would change the meaning of the picture each minute.
const places = new Map();

export function reads() {
  return [{ path: "shares", every: 10 }];
}

function drawn() {
  const clients = state.live?.clients ?? [];
  const known = new Set(clients.map((c) => c.name));
  for (const name of places.keys()) if (!known.has(name)) places.delete(name);
  const bySize = [...clients].sort((a, b) => b.size - a.size || a.name.localeCompare(b.name));
  for (const c of bySize) {
    if (places.size >= most) break;
    if (places.has(c.name)) continue;
    const taken = new Set(places.values());
    places.set(c.name, Array.from({ length: most }, (_, n) => n).find((n) => !taken.has(n)));
  }
  return [...places.entries()].sort((a, b) => a[1] - b[1]).map(([name, colour]) => ({ name, colour }));
}

export function series() {
  const own = drawn().flatMap(({ name }) => ["admitted", "default"].map((what) => "client." + name + "." + what));
  return [...own, "fair_share.capacity", "fair_share.admitted"];
}

export function clients() {
  const live = state.live;
  if (!live.clients?.length) {
    return card("Clients and shares", null, h("p", null, answerOf("shares").status === 404 ? "Fair share is off." : "No client is known yet."),
      h("p", { class: "quiet" }, "fair_share divides the capacity of the service among its clients."));
  }
  return [areas(live), shares(live)];
}

function areas(live) {
  const cycle = answerOf("shares").value?.cycle_seconds || 1;
  const list = drawn();
  const own = (name, f) => {
    const all = f.tier.columns("client." + name + ".admitted", f.from, f.until, f.k);
    const share = f.tier.columns("client." + name + ".default", f.from, f.until, f.k, true);
    return { all, own: all.map((v, i) => (v === null ? null : Math.min(v, (share[i] ?? v * cycle) / cycle))) };
  };
  const up = list.flatMap(({ name, colour }) => [
    { label: clip(name, 24), look: "c" + colour, values: (f) => own(name, f).own },
    { label: clip(name, 24) + ", borrowed", within: clip(name, 24), look: "c" + colour + "-lent", values: (f) => {
      const { all, own: within } = own(name, f);
      return all.map((v, i) => (v === null ? null : v - within[i]));
    } },
  ]);
  if (live.clients_total > list.length || live.clients.length > list.length) {
    up.push({ label: "Others", look: "c7", values: (f) => {
      const rest = f.tier.columns("fair_share.admitted", f.from, f.until, f.k);
      for (const { name } of list) own(name, f).all.forEach((v, i) => { if (rest[i] !== null) rest[i] = Math.max(0, rest[i] - (v ?? 0)); });
      return rest;
    } });
  }
  const capacity = { label: "Capacity", look: "line-bound", values: (f) => f.tier.columns("fair_share.capacity", f.from, f.until, f.k, true).map((v) => (v === null ? null : v / cycle)) };
  return chart({ id: "clients", title: "Capacity by client: solid is its own share, hatched is borrowed", up, lines: [capacity], kind: "area", direct: true, unit: "/s", height: 290 });
}

function shares(live) {
  const now = Date.parse(live.now);
  const lasting = new Map((answerOf("shares").value?.clients ?? []).map((c) => [c.client, c.lasting]));
  const demand = Math.max(1, ...live.clients.map((c) => Math.max(c.demand, c.size)));
  const moved = Math.max(1, ...live.clients.map((c) => Math.abs(c.size - c.default)));
  const more = live.clients_total > live.clients.length ? " The first " + live.clients.length + " of " + live.clients_total + "." : "";
  return card("Shares", null, table("shares", [{ label: "Client", narrow: true, break: true }, { label: "Demand of share" }, { label: "Demand", number: true, narrow: true }, { label: "Share", number: true, narrow: true },
    { label: "Default", number: true }, { label: "Lent", number: true }, { label: "← lent, borrowed →" }, { label: "Borrowed", number: true }, { label: "Refused/s", number: true, narrow: true }, { label: "Since" }, { label: "Lasting" }, { label: "Reason", narrow: true }],
  live.clients.map((c) => {
    const lent = Math.max(0, c.default - c.size);
    const borrowed = Math.max(0, c.size - c.default);
    return {
      key: c.name, warn: c.refused > 0,
      cells: [h("b", { class: "key" }, clip(c.name, 48)), bar(c.demand, c.size, demand), number(c.demand), number(c.size), number(c.default), lent ? number(lent) : "", balance(lent, borrowed, moved), borrowed ? number(borrowed) : "",
        number(c.refused), c.since ? ago(c.since, now) : "–", lasting.has(c.name) ? (lasting.get(c.name) ? "yes" : "no") : "–",
        link(route("why", "", { who: c.name }), "Why?", { "aria-label": "Why is " + clip(c.name, 48) + " limited?" })],
    };
  }), ""),
  h("p", { class: "quiet" }, "Units of one cycle. The mark in the bar is the share; demand beyond the mark is refused. Newer names do not reduce the default share of a lasting client." + more));
}
