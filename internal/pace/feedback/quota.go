package feedback

import "time"

// spent returns how long no units remain, and the field that says so. The reason is empty
// if units remain or no field says so.
func (a *answer) spent() (d time.Duration, reason string) {
	lines := a.fields[a.rateLimit]
	if len(lines) == 0 && len(a.fields[a.old[0]]) == 0 && len(a.fields[a.x[0]]) == 0 || a.cached() {
		return 0, ""
	}
	if d, ok := a.empty(lines); ok {
		return d, "RateLimit r=0"
	}
	if d, ok := a.remaining(a.old, false); ok {
		return d, "RateLimit-Remaining 0"
	}
	if d, ok := a.remaining(a.x, true); ok {
		return d, "X-RateLimit-Remaining 0"
	}
	return 0, ""
}

// cached reports whether the answer comes from a cache. Its fields are then outdated.
func (a *answer) cached() bool {
	text, ok := a.one(a.age)
	return ok && text != "0"
}

// remaining parses a pair of fields: the remaining units, and the reset as a number. No
// document defines the form of the X- fields, so their reset may also be a date.
func (a *answer) remaining(fields [2]string, x bool) (time.Duration, bool) {
	left, ok := a.one(fields[0])
	if !ok {
		return 0, false
	}
	if units, ok := decimal(left); !ok || units != (quantity{}) {
		return 0, false
	}
	text, ok := a.one(fields[1])
	if !ok {
		return 0, false
	}
	if q, ok := decimal(text); ok {
		d, ok := a.pause(q, time.Second)
		// Some providers send milliseconds in the X- fields. Nothing tells them from seconds.
		if ok && x && d > Longest {
			a.implausible = true
			return 0, false
		}
		return d, ok
	}
	if !x {
		return 0, false
	}
	at, ok := date(text)
	return at.Sub(a.theirs()), ok
}

const (
	// longestDelay is the largest number that is a delay. A larger one is a time since 1970.
	longestDelay = 365 * 24 * time.Hour
	// oldest is how long ago a time since 1970 may be: a clock that differs, and the way of the answer.
	oldest = time.Minute
)

// pause returns the pause that a number demands. A number above a year of units is a time
// since 1970, in seconds, or in milliseconds if it is too large for seconds. It is compared
// with the answer's Date. If it is more than a minute ago or more than Longest ahead, pause
// returns false, because the number means something else.
func (a *answer) pause(q quantity, unit time.Duration) (time.Duration, bool) {
	d := q.in(unit)
	if d <= longestDelay {
		return d, true
	}
	since := q.in(time.Second)
	if since == endless {
		since = q.in(time.Millisecond)
	}
	d = time.Unix(0, int64(since)).Sub(a.theirs())
	if d < -oldest || d > Longest {
		a.implausible = true
		return 0, false
	}
	return max(d, 0), true
}
