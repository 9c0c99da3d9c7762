package wheel

import (
	"syscall"
	"testing"
	"time"
)

// processorTime gives the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	process, err := syscall.GetCurrentProcess()
	if err != nil {
		b.Fatal(err)
	}
	var created, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(process, &created, &ended, &kernel, &user); err != nil {
		b.Fatal(err)
	}
	return ticks(kernel) + ticks(user)
}

// ticks reads a duration in units of 100 ns.
func ticks(t syscall.Filetime) time.Duration {
	return 100 * time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime))
}
