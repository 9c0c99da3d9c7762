// The throttle: the queue in front of the service.

import { chart } from "./chart.js";
import { h } from "./dom.js";
import { duration, number, words } from "./format.js";
import { badge, card, figures, mode, table } from "./parts.js";
import { state } from "./state.js";

const classes = [
  { name: "critical_plus", means: "users see a refusal at once" }, { name: "critical", means: "users see a refusal" },
  { name: "sheddable_plus", means: "can be repeated within minutes" }, { name: "sheddable", means: "can be dropped" },
];

export function series() {
  return ["throttle.in_flight", "throttle.concurrency", ...classes.flatMap((c) => ["throttle.queued." + c.name, "throttle.refused." + c.name])];
}

export function throttle() {
  const t = state.live.throttle;
  if (!t) {
    return card("Throttle", null, h("p", null, "The throttle is off."),
      h("p", { class: "quiet" }, "throttle bounds the requests in flight to the service, and refuses the least important ones first."));
  }
  const waiting = Object.values(t.queued).reduce((a, b) => a + b, 0);
  return [
    h("section", { class: "card", key: "state", "aria-label": "Throttle now" }, h("header", null, h("h2", null, "Throttle now"), mode(t.mode), t.hung && badge("fault", "the service answers nothing")),
      figures([
        { label: "At the service", value: number(t.in_flight), unit: t.concurrency ? " of " + t.concurrency : "" }, { label: "Waiting", value: number(waiting) },
        { label: "Mean wait", value: t.mean_wait_seconds ? duration(t.mean_wait_seconds) : "–" }, { label: "Advised concurrency", value: t.advised_concurrency ? String(t.advised_concurrency) : "–" },
        { label: "Refused", value: number(Object.values(t.refused).reduce((a, b) => a + b, 0)), unit: "/s" },
      ])),
    h("div", { class: "columns even", key: "charts" },
      chart({
        id: "queue", title: "Waiting above the line, refused below",
        up: classes.map((c) => ({ name: "throttle.queued." + c.name, label: "Waits: " + words(c.name), look: c.name, gauge: true })),
        down: classes.map((c) => ({ name: "throttle.refused." + c.name, label: "Refused/s: " + words(c.name), look: c.name })), unit: "", least: 1,
      }),
      chart({
        id: "flight", title: "Requests at the service", kind: "area", unit: "", gauge: true, least: 1, up: [{ name: "throttle.in_flight", label: "In flight", look: "in_flight" }],
        lines: [{ name: "throttle.concurrency", label: "Bound", look: "line-bound" }],
      })),
    card("By class, most important first", { key: "classes" }, table("classes", [{ label: "Class", narrow: true }, { label: "Waits", number: true, narrow: true }, { label: "Refused/s", number: true, narrow: true }, { label: "What it means" }],
      classes.map((c) => ({ key: c.name, warn: t.refused[c.name] > 0, cells: [h("b", null, words(c.name)), number(t.queued[c.name] ?? 0), number(t.refused[c.name] ?? 0), h("span", { class: "quiet" }, c.means)] })), ""),
    h("p", { class: "quiet" }, reasons(t.reasons))),
  ];
}

function reasons(all) {
  const list = Object.entries(all ?? {}).filter(([, n]) => n > 0).map(([name, n]) => words(name) + " " + number(n) + "/s");
  return list.length ? "Refused by reason: " + list.join(", ") + "." : "The throttle refuses nothing now.";
}
