// How figures are written. Nothing here touches the page.

/** A rate or an amount in at most four characters where possible: 0, 0.4, 12.3, 129, 12.5k. */
export function number(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return "–";
  const a = Math.abs(n);
  if (a >= 999_500_000) return trim(n / 1e9, a >= 1e10 ? 0 : 1) + "G";
  if (a >= 999_500) return trim(n / 1e6, a >= 1e7 ? 0 : 1) + "M";
  if (a >= 9_995) return trim(n / 1e3, a >= 99_950 ? 0 : 1) + "k";
  if (a >= 99.95) return String(Math.round(n));
  if (a > 0 && a < 0.05) return n < 0 ? "-0.1" : "<0.1";
  return trim(n, 1);
}

function trim(n, digits) {
  return n.toFixed(digits).replace(/\.0$/, "");
}

/** A part of a whole, in percent. */
export function percent(part, whole) {
  if (!(whole > 0)) return "–";
  const p = (100 * part) / whole;
  if (p > 0 && p < 0.1) return "<0.1 %";
  return (p < 9.95 ? p.toFixed(1).replace(/\.0$/, "") : String(Math.round(p))) + " %";
}

/** A length of time in one unit: 8 s, 5 min, 3 h, 2 d. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const s = Math.max(0, seconds);
  if (s < 1 && s > 0) return Math.max(1, Math.round(s * 1000)) + " ms";
  if (s < 99.5) return (s < 10 && s % 1 > 0.05 ? s.toFixed(1) : Math.round(s)) + " s";
  if (s < 99 * 60) return Math.round(s / 60) + " min";
  if (s < 48 * 3600) return Math.round(s / 3600) + " h";
  return Math.round(s / 86400) + " d";
}

/** The time between an RFC 3339 time and now, in whole units; "–" without a time. */
export function ago(time, now) {
  return time ? duration(Math.max(0, Math.round((now - Date.parse(time)) / 1000))) : "–";
}

/** The time of day of Unix seconds, in the zone of the browser. */
export function clock(seconds, withSeconds = true) {
  const d = new Date(seconds * 1000);
  const two = (n) => String(n).padStart(2, "0");
  return two(d.getHours()) + ":" + two(d.getMinutes()) + (withSeconds ? ":" + two(d.getSeconds()) : "");
}

/** A text of at most so many characters, with an ellipsis. */
export function clip(text, most) {
  const all = Array.from(String(text ?? ""));
  return all.length > most ? all.slice(0, most - 1).join("") + "…" : all.join("");
}

/** Words for a name of the API: sheddable_plus is "sheddable plus". */
export function words(name) {
  return String(name).replaceAll("_", " ");
}
