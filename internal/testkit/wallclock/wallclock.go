// Package wallclock makes times of a machine whose wall clock was set.
package wallclock

import (
	"time"
	"unsafe"
)

// Set returns t as time.Now would return it after the wall clock was set forward by change, or back. change is
// whole seconds. The monotonic reading stays. t has one, else Set panics.
func Set(t time.Time, change time.Duration) time.Time {
	// Package time cannot change one of the two readings. Bit 63 of the first word marks a monotonic reading, and
	// bits 30 to 62 are seconds.
	words := (*struct{ wall, monotonic uint64 })(unsafe.Pointer(&t)) //nolint:gosec // no other way, see above
	if words.wall>>63 == 0 {
		panic("wallclock: the time has no monotonic reading") //nolint:forbidigo // a fault of the test
	}
	words.wall += uint64(int64(change/time.Second) << 30)
	return t
}
