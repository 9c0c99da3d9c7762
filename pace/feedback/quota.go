package feedback

import "time"

// spent gives how long nothing remains, and by which field; no reason when something
// does, or nothing is said of it.
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

// cached says that the answer comes from a cache, and its fields from another time.
func (n *names) cached(h map[string][]string) bool {
	text, ok := one(h, n.age)
	return ok && text != "0"
}

// remaining reads a pair of fields that each hold one number. Where the second may also
// be a time, seconds from now are below a year, and seconds since 1970 below 292 years:
// what is more are milliseconds.
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
