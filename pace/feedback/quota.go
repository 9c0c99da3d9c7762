package feedback

import "time"

// spent returns how long no units remain, and the field that says so. The reason is empty
// if units remain or no field says so.
func (n *names) spent(h map[string][]string, now time.Time) (d time.Duration, reason string) {
	lines, old, x := h[n.rateLimit], h[n.old[0]], h[n.x[0]]
	if len(lines) == 0 && len(old) == 0 && len(x) == 0 || n.cached(h) {
		return 0, ""
	}
	if d, ok := empty(lines); ok {
		return d, "RateLimit r=0"
	}
	if d, ok := n.remaining(h, n.old, now, false); ok {
		return d, "RateLimit-Remaining 0"
	}
	if d, ok := n.remaining(h, n.x, now, true); ok {
		return d, "X-RateLimit-Remaining 0"
	}
	return 0, ""
}

// cached reports whether the answer comes from a cache. Its fields are then outdated.
func (n *names) cached(h map[string][]string) bool {
	text, ok := one(h, n.age)
	return ok && text != "0"
}

// remaining parses a pair of fields with one number each: the remaining units and the reset.
// With times, the reset may also be a point in time. A number below one year in seconds is
// then relative to now. A number below 292 years is seconds since 1970. A larger number is
// milliseconds since 1970.
func (n *names) remaining(
	h map[string][]string, fields [2]string, now time.Time, times bool,
) (time.Duration, bool) {
	left, ok := one(h, fields[0])
	if !ok {
		return 0, false
	}
	if units, ok := decimal(left, time.Second); !ok || units != 0 {
		return 0, false
	}
	text, ok := one(h, fields[1])
	if !ok {
		return 0, false
	}
	const year = 365 * 24 * time.Hour
	d, number := decimal(text, time.Second)
	if number && d < year {
		return d, true
	}
	if !times {
		return d, number
	}
	at, ok := date(text)
	if number {
		if d == endless {
			d, _ = decimal(text, time.Millisecond)
		}
		at, ok = time.Unix(0, int64(d)), d < endless
	}
	return at.Sub(n.theirs(h, now)), ok
}
