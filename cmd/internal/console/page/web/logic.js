// What the page concludes from the answers of the API. Nothing here touches the page, so that the browser tests call these functions.

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]);

/**
 * Reads what an operator types into the box: a client or its address, a request, a request id, in any order:
 * "acme GET /v1/search", "203.0.113.9 /login", "id:4f2a".
 */
export function parseQuestion(text) {
  const q = { who: "", method: "GET", path: "", address: "", id: "" };
  const who = [];
  let method = "";
  for (const word of text.trim().split(/\s+/).filter(Boolean)) {
    if (methods.has(word) && !method) method = word;
    else if (word.startsWith("/") && !q.path) q.path = word;
    else if (/^id:./.test(word)) q.id = word.slice(3);
    else if (/^\d{1,3}(\.\d{1,3}){3}$/.test(word) || (/^[0-9a-fA-F:]+$/.test(word) && word.split(":").length > 2)) q.address = word;
    else who.push(word);
  }
  q.who = who.join(" ");
  q.method = method || "GET";
  return q;
}

/** Splits a hash route: "#/rule/a%20b?x=1" is {view: "rule", name: "a b", query: URLSearchParams}. */
export function parseRoute(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view, ...rest] = path.split("/");
  return { view: view || "overview", name: decode(rest.join("/")), query: new URLSearchParams(query ?? "") };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A pasted link may be cut off within an escape.
  }
}

/** Makes the hash of a route. */
export function route(view, name, query) {
  const q = new URLSearchParams(Object.entries(query ?? {}).filter(([, v]) => v));
  return "#/" + view + (name ? "/" + encodeURIComponent(name) : "") + (q.size ? "?" + q : "");
}

/** The values of a key in the form of the API: header:X-Client-Id="acme" method="GET" is ["acme", "GET"]; other texts are themselves. */
export function keyParts(text) {
  const parts = [];
  for (const m of String(text ?? "").matchAll(/(\S+?)="((?:[^"\\]|\\.)*)"/g)) parts.push({ part: m[1], value: unquote(m[2]) });
  return parts.length ? parts : [{ part: "", value: String(text ?? "") }];
}

function unquote(inner) {
  try {
    return JSON.parse('"' + inner + '"');
  } catch {
    return inner; // Go writes some escapes that JSON does not have.
  }
}

/** The short form of a key: its values. */
export function keyText(text) {
  return keyParts(text).map((p) => p.value).join(" · ");
}

/** What stages and rules are called for people. */
export function nameOf(rule) {
  return rule.kind === "fair_share" ? "fair share" : rule.name;
}

/** Orders rules and stages by trouble: refusals first, then what would be refused, then traffic. */
export function byTrouble(rules) {
  return [...rules].sort((a, b) => b.refused - a.refused || b.would_refuse - a.would_refuse || b.passed - a.passed || a.name.localeCompare(b.name));
}

/**
 * Keeps the order in which rows are on the page: rows that are new come last. A list that changes its order under the pointer leads to
 * clicks on the wrong row.
 */
export function inOrder(rows, key, order) {
  const at = new Map(order.map((k, n) => [k, n]));
  return [...rows].sort((a, b) => (at.get(key(a)) ?? Infinity) - (at.get(key(b)) ?? Infinity) || 0);
}

/** Is it Headgate, the service or the store? The badge before the sentence, which the API has. */
export function cause(live) {
  const t = live.totals;
  if ((live.attention ?? []).some((a) => a.level === "fault" && a.about === "store")) return { level: "fault", text: "The store" };
  if (live.window_seconds === 0) return { level: "note", text: "Starting" };
  if (t.requests < 0.05) return { level: "note", text: "Idle" };
  if (live.throttle?.hung || (t.service_failed > t.refused && t.service_failed / t.requests >= 0.005)) return { level: "fault", text: "The service" };
  if (t.refused / t.requests >= 0.005) return { level: "warning", text: "Headgate" };
  return { level: "good", text: "Served" };
}

/** The largest round number of the kind 1, 2, 2.5, 5 × 10^n that an axis ends at: at least n. */
export function nice(n) {
  if (!(n > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(n));
  for (const f of [1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10]) if (f * unit >= n * 0.999) return Number((f * unit).toPrecision(3));
  return 10 * unit;
}

/** Where an axis ends, so that one outlier does not flatten the rest: beyond 1.2 times the 98th percentile, columns are cut off. */
export function axisEnd(values) {
  const sorted = values.filter((v) => v > 0).sort((a, b) => a - b);
  if (!sorted.length) return 0;
  const most = sorted.at(-1);
  const usual = 1.2 * sorted[Math.min(sorted.length - 1, Math.floor(0.98 * sorted.length))];
  const ninetieth = sorted[Math.floor(0.9 * (sorted.length - 1))];
  return sorted.length >= 20 && most > 2.5 * ninetieth ? Math.max(Math.min(most, usual), 1.5 * ninetieth) : most;
}

/** The quantile of a histogram, in seconds: counts has one more entry than bounds. null without requests. */
export function quantile(bounds, counts, q) {
  const total = (counts ?? []).reduce((a, b) => a + b, 0);
  if (!total || !bounds?.length) return null;
  let left = q * total;
  for (let i = 0; i < counts.length; i++) {
    if (left > counts[i] || counts[i] === 0) {
      left -= counts[i];
      continue;
    }
    const low = i === 0 ? 0 : bounds[i - 1];
    const high = i < bounds.length ? bounds[i] : low;
    return low + (high - low) * (left / counts[i]);
  }
  return bounds.at(-1);
}

/** The badge beside the name: faults, and the instances that answer. */
export function health(live) {
  const faults = (live.attention ?? []).filter((a) => a.level === "fault").length;
  const all = live.instances ?? [];
  const fleet = all.length ? " · " + all.filter((i) => i.ok).length + " of " + all.length : "";
  if (faults) return { level: "fault", text: faults + (faults === 1 ? " fault" : " faults") + fleet };
  const warnings = (live.attention ?? []).filter((a) => a.level === "warning").length;
  if (warnings) return { level: "warning", text: warnings + (warnings === 1 ? " warning" : " warnings") + fleet };
  return { level: "good", text: (live.state === "draining" ? "draining" : "no faults") + fleet };
}
