package etcd

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// edge gives the first edge of windows of a length at or after a time.
func edge(t headgate.Instant, per time.Duration) headgate.Instant {
	if t <= 0 {
		return 0
	}
	if over := int64(t) % int64(per); over != 0 {
		t += headgate.Instant(int64(per) - over)
	}
	return t
}

// patientChange is how long it may be until windows of two lengths have a common edge,
// when it is longer than either of them.
const patientChange = time.Hour

// commonLength gives the length of windows whose edges are edges of windows of both
// lengths. It is an error when they are absurdly far apart.
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
