package config

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is the processor time of this process. Other processes that use the cores make
// a text take longer by the clock, but not by this. No test of this package is parallel.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
