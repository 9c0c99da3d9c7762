// The history that the page has: rings of values by series and time. Nothing here touches the page.

/** The spans that an operator chooses from, with the tier of the API and how often its newest step is read. */
export const spans = {
  "5m": { label: "5 min", tier: "1s", step: 1, length: 300, every: 1 },
  "1h": { label: "1 h", tier: "10s", step: 10, length: 360, every: 10 },
  "24h": { label: "24 h", tier: "5m", step: 300, length: 288, every: 60 },
};

/** One tier: for each series a ring of values. A slot is valid if it has the time that is asked for. */
export class Tier {
  constructor(step, length) {
    this.step = step;
    this.length = length;
    this.rings = new Map();
  }

  /** Takes an answer of /api/v1/history. */
  add(history) {
    for (const [name, values] of Object.entries(history.series)) {
      const ring = this.ring(name);
      values.forEach((v, i) => {
        if (v === null || v === undefined) return;
        const time = history.start + i * history.step;
        const slot = Math.floor(time / this.step) % this.length;
        ring.times[slot] = time;
        ring.values[slot] = v;
      });
      if (values.length) ring.newest = Math.max(ring.newest, history.start + (values.length - 1) * history.step);
    }
  }

  has(name) {
    return this.rings.has(name);
  }

  /** The time since which at least one of the series has to be read: a view that was left has older ones than the present view. */
  since(names) {
    return Math.min(...names.map((name) => this.rings.get(name)?.newest ?? 0));
  }

  ring(name) {
    let ring = this.rings.get(name);
    if (!ring) {
      ring = { times: new Float64Array(this.length), values: new Float64Array(this.length), newest: 0 };
      this.rings.set(name, ring);
    }
    return ring;
  }

  /** Forgets series that no view has asked for, so that a page that is open for days does not grow. */
  keep(names) {
    if (this.rings.size <= 400) return;
    for (const name of this.rings.keys()) if (!names.has(name)) this.rings.delete(name);
  }

  /** Forgets everything, after a clock has stepped or another instance answers. */
  clear() {
    this.rings.clear();
  }

  /** The value of a series at a time, or null. */
  at(name, time) {
    const ring = this.rings.get(name);
    if (!ring) return null;
    const slot = Math.floor(time / this.step) % this.length;
    return Math.abs(ring.times[slot] - time) < this.step / 2 ? ring.values[slot] : null;
  }

  /**
   * Groups the steps from..to into columns of k steps that begin at multiples of k, so that columns do not change their content while
   * time passes. Counts become rates in a second; with gauge, the mean of the values. null is a column without data.
   */
  columns(name, from, to, k, gauge) {
    const wide = k * this.step;
    const out = [];
    for (let t = Math.floor(from / wide) * wide; t < to; t += wide) {
      let sum = 0;
      let n = 0;
      for (let u = t; u < t + wide; u += this.step) {
        const v = this.at(name, u);
        if (v === null) continue;
        sum += v;
        n++;
      }
      out.push(n === 0 ? null : sum / n / (gauge ? 1 : this.step));
    }
    return out;
  }
}
