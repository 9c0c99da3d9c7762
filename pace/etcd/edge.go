package etcd

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// edge gives the first window edge at or after t, for windows of length per.
func edge(t headgate.Instant, per time.Duration) headgate.Instant {
	if t <= 0 {
		return 0
	}
	if over := int64(t) % int64(per); over != 0 {
		t += headgate.Instant(int64(per) - over)
	}
	return t
}

// patientChange bounds the time until windows of two lengths have a common edge, if it is longer
// than both.
const patientChange = time.Hour

// commonLength gives the length of windows with edges that are edges of windows of both lengths. It
// gives an error when these are too far apart.
func commonLength(a, b time.Duration) (time.Duration, error) {
	divisor := gcd(a, b)
	bound := max(a, b, patientChange)
	if a/divisor > bound/b {
		return 0, fmt.Errorf("pace/etcd: windows of %v and of %v begin together less than once in %v: "+
			"choose a length that divides the other or is a multiple of it, "+
			"or change by way of one that divides both, such as %v", a, b, bound, divisor)
	}
	return time.Duration(int64(a/divisor) * int64(b)), nil
}

func gcd(a, b time.Duration) time.Duration {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
