// Leases and quotas near their limits.

import { h } from "./dom.js";
import { clip, duration, number, percent } from "./format.js";
import { badge, bar, card, fault, table } from "./parts.js";
import { answerOf, mayRead } from "./state.js";

const usagePath = "usage?limit=200";

export function reads() {
  return [{ path: "leases", every: 3 }, ...(mayRead() ? [{ path: usagePath, every: 15 }] : [])];
}

export function quotas() {
  return [usage(), leases()];
}

function usage() {
  const entry = answerOf(usagePath);
  const rows = (entry.value?.customers ?? []).flatMap((c) => c.limits.map((l) => ({ c, l, part: l.hard > 0 ? l.used / l.hard : 0 })));
  rows.sort((a, b) => b.part - a.part || a.c.customer.localeCompare(b.c.customer));
  if (!mayRead()) return card("Quotas, nearest to the limit first", null, h("p", { class: "quiet" }, "Reading usage needs the scope administer."));
  return card("Quotas, nearest to the limit first", null, entry.status !== 404 && fault(entry),
    table("usage", [{ label: "Customer", narrow: true, break: true }, { label: "Plan" }, { label: "Quota", break: true }, { label: "Limit", narrow: true }, { label: "Used of the limit" }, { label: "Used", number: true, narrow: true }, { label: "Part", number: true, narrow: true }, { label: "Ends in" }],
      rows.slice(0, 50).map(({ c, l, part }) => ({
        key: c.customer + "\n" + l.quota + l.period, warn: part >= 0.9,
        cells: [h("b", { class: "key" }, clip(c.customer, 48)), [clip(c.plan, 30), c.raised && [" ", badge("note", "raised")]], clip(l.quota, 40), h("code", null, l.limit), bar(l.used, l.hard, Math.max(l.hard, l.used)), number(l.used),
          percent(l.used, l.hard), l.end ? duration((Date.parse(l.end) - Date.now()) / 1000) : "–"],
      })), entry.value ? "No customer has an entry." : entry.status === 404 ? "No rule has a quota." : "Reading…"),
    (entry.value?.next || rows.length > 50) && h("p", { class: "quiet" }, "The first 200 customers by name, and their 50 limits that are nearest to full."));
}

function leases() {
  const entry = answerOf("leases");
  if (entry.status === 404 || !entry.value) return card("Leases", null, h("p", { class: "quiet" }, entry.status === 404 ? "This instance gives no capacity leases." : entry.error || "Reading…"));
  const v = entry.value;
  const place = v.mine ? badge("good", v.group ? "master of " + v.group : "gives leases") : badge("note", v.master ? "master is " + v.master : "no master is known");
  return card("Leases", { aside: place }, table("leases", [{ label: "Resource", narrow: true, break: true }, { label: "Has of capacity" }, { label: "Has", number: true, narrow: true }, { label: "Wants", number: true, narrow: true }, { label: "Capacity", number: true, narrow: true },
    { label: "Unknown", number: true }, { label: "Holders", number: true }, { label: "Parent's lease ends in" }],
  (v.resources ?? []).slice(0, 200).map((r) => ({
    key: r.name, warn: r.wants > r.capacity,
    cells: [h("b", { class: "key" }, clip(r.name, 48)), bar(r.wants, r.capacity, Math.max(r.wants, r.capacity)), number(r.has), number(r.wants), number(r.capacity), number(r.unknown), number(r.claims), r.end_seconds ? duration(r.end_seconds) : "–"],
  })), "No resource is claimed now."));
}
