package usage_test

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/usage"
)

// hostile are bodies that are made to cost much.
var hostile = map[string]func(n int) string{
	"quotes":      func(n int) string { return `{"x":` + strings.Repeat(`"`, n) },
	"escapes":     func(n int) string { return `{"x":"` + strings.Repeat(`\`, n) },
	"quoted":      func(n int) string { return `{"x":"` + strings.Repeat(`\"`, n/2) },
	"brackets":    func(n int) string { return strings.Repeat(`[`, n) },
	"braces":      func(n int) string { return strings.Repeat(`{"usage":`, n/9) },
	"keys":        func(n int) string { return `{"usage":{` + strings.Repeat(`"i":1,`, n/6) },
	"long key":    func(n int) string { return `{"` + strings.Repeat(`k`, n) },
	"long number": func(n int) string { return `{"n":` + strings.Repeat(`1`, n) },
	"line ends":   func(n int) string { return strings.Repeat("\n", n) },
	"returns":     func(n int) string { return strings.Repeat("\r", n) },
	"lines of CR": func(n int) string { return strings.Repeat("a:\r", n/3) },
	"data of CR":  func(n int) string { return strings.Repeat("data:1\r", n/7) },
	"data":        func(n int) string { return strings.Repeat("data:\n", n/6) },
	"zeros":       func(n int) string { return strings.Repeat("\x00", n) },
}

// spent is the time that the processor has spent in this thread.
func spent(t *testing.T) time.Duration {
	t.Helper()
	const thread = 1 // RUSAGE_THREAD
	var r syscall.Rusage
	if err := syscall.Getrusage(thread, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestHostile checks that the time of bodies that are made to cost much grows with their length alone: one body costs about as much as 64
// bodies of a 64th of its length. A quadratic scan takes 64 times as long. The time is that of the processor, so that a busy machine does
// not matter, and the clock of the processor may be as coarse as 4 ms.
func TestHostile(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := compile(t)
	const small, factor = 8 << 10, 64
	var s usage.Scanner
	scan := func(body []byte, format usage.Format, size, runs int) time.Duration {
		begin := spent(t)
		for range runs {
			s.Begin(p, format)
			for i := 0; i < len(body); i += size {
				s.Write(body[i:min(i+size, len(body))])
			}
		}
		return spent(t) - begin
	}
	for name, body := range hostile {
		for format := usage.JSON; format <= usage.Frames; format++ {
			for _, size := range []int{64, 1 << 20} {
				short, long := scan([]byte(body(small)), format, size, factor), scan([]byte(body(factor*small)), format, size, 1)
				if long > 8*short+100*time.Millisecond {
					t.Errorf("%s in format %d, pieces of %d: %v for %d bodies, and %v for one of their length", name, format, size, short, factor, long)
				}
			}
		}
	}
}
