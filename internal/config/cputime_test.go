package config

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time of this process. Unlike elapsed time, it does not grow when
// other processes use the cores. No test of this package runs in parallel.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
