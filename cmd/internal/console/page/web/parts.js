// Parts that views share.

import { h } from "./dom.js";
import { inOrder } from "./logic.js";
import { state } from "./state.js";

const signs = { good: "✓", warning: "!", fault: "✕", note: "·" };

/** A state in words, with a sign and a colour. */
export function badge(level, text) {
  return h("span", { class: "badge " + level }, h("span", { "aria-hidden": "true" }, signs[level] ?? "·"), " ", text);
}

/** A badge for a mode. */
export function mode(text) {
  const level = text.startsWith("enforce") ? "good" : "note";
  return badge(level, text.replaceAll("_", " "));
}

export function card(title, props, ...children) {
  return h("section", { class: "card " + (props?.class ?? ""), key: props?.key ?? title, "aria-label": title },
    h("header", null, h("h2", null, title), props?.aside), ...children);
}

/** Four or six figures in a row. figures: {label, value, unit, rest}. */
export function figures(list) {
  return h("dl", { class: "figures-row" }, list.filter(Boolean).map((f) => h("div", { key: f.label }, h("dt", null, f.label),
    h("dd", null, h("b", null, f.value), f.unit && h("span", null, f.unit), f.rest && h("span", { class: "quiet rest" }, f.rest)))));
}

/**
 * A table with rows of one kind. columns: {label, number, narrow}, where narrow says that the column is also there on a narrow screen.
 * rows: {key, cells, warn}. Rows keep their places while a dialog is open, or while the pointer or the focus is in the table.
 */
export function table(id, columns, rows, none) {
  if (!rows.length) return h("p", { class: "quiet" }, none);
  const busy = state.dialog || document.querySelector("#" + id + " tbody:is(:hover, :focus-within)");
  const sorted = busy && state.orders[id] ? inOrder(rows, (r) => r.key, state.orders[id]) : rows;
  state.orders[id] = sorted.map((r) => r.key);
  const kind = (i) => (columns[i].number ? "number" : "") + (columns[i].narrow ? "" : " wide") + (columns[i].break ? " break" : columns[i].still ? " still" : "");
  return h("div", { class: "scroll" }, h("table", { id },
    h("thead", null, h("tr", null, columns.map((c, i) => h("th", { scope: "col", class: kind(i) }, c.label)))),
    h("tbody", null, sorted.map((r) => h("tr", { key: r.key, class: r.warn ? "warn" : undefined },
      r.cells.map((cell, i) => h(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : undefined, class: kind(i) }, cell)))))));
}

/** A link to a place of the page. */
export function link(href, text, props) {
  return h("a", { href, ...props }, text);
}

/** A bar of a part of a whole, with a mark at the limit. The figures beside it say the same. */
export function bar(value, limit, most) {
  const share = (n) => Math.min(100, Math.max(0, (100 * n) / Math.max(1e-9, most))).toFixed(1) + "%";
  return h("span", { class: "bar", "aria-hidden": "true" },
    h("span", { class: "within", style: { width: share(Math.min(value, limit)) } }),
    value > limit && h("span", { class: "beyond", style: { width: share(value - limit) } }),
    h("span", { class: "limit", style: { left: share(limit) } }));
}

/** A bar to the left for what is lent, and to the right for what is borrowed. */
export function balance(lent, borrowed, most) {
  const share = (n) => Math.min(50, (50 * n) / Math.max(1e-9, most)).toFixed(1) + "%";
  return h("span", { class: "balance", "aria-hidden": "true" },
    lent > 0 && h("span", { class: "lent", style: { width: share(lent), right: "50%" } }),
    borrowed > 0 && h("span", { class: "borrowed", style: { width: share(borrowed), left: "50%" } }), h("span", { class: "centre" }));
}

/** What is wrong with the answer of a call that a card shows, or nothing. */
export function fault(entry) {
  return entry.error ? h("p", { class: "problem" }, entry.error) : null;
}
