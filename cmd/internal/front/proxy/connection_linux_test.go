package proxy

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestManyOptions checks that the work for fields and options of Connection grows as their number, not as its square: 16 times as many
// take at most 64 times as long.
func TestManyOptions(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(fine))
	runtime.LockOSThread() // threadTime is of this thread, so that other work on the machine does not count.
	defer runtime.UnlockOSThread()
	for name, build := range map[string]func(n int) http.Header{
		"one line names every field": func(n int) http.Header {
			h := http.Header{}
			for i := range n {
				h[fmt.Sprintf("X-%d", i)] = []string{"a"}
			}
			h["Connection"] = []string{strings.Join(slices.Collect(maps.Keys(h)), ",")}
			return h
		},
		"many lines":                      func(n int) http.Header { return http.Header{"Connection": slices.Repeat([]string{"a"}, n)} },
		"many lines that name the client": func(n int) http.Header { return http.Header{"Connection": slices.Repeat([]string{"X-Real-Ip, b"}, n)} },
	} {
		measure := func(n int) time.Duration {
			shortest := time.Hour
			for range 5 {
				l := list(build(n))
				began := threadTime(t)
				p.dropNominated(l)
				removeHopByHop(l)
				shortest = min(shortest, threadTime(t)-began)
			}
			return shortest
		}
		if few, many := measure(500), measure(8000); many > 64*few {
			t.Errorf("%s: %v for 500, %v for 8,000", name, few, many)
		}
	}
}

// threadTime returns the processor time of the calling thread.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}
