// Package leak finds goroutines that outlive the tests that started them. The packages of the library test with this package, so
// that its module requires no other module.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long a goroutine may take to end after the tests.
const patience = 10 * time.Second

// TestingM has the method of testing.M that Main needs.
type TestingM interface{ Run() (code int) }

// Main runs the tests and exits with their code, or with 1 if goroutines outlive them. A goroutine with an ignored function on its
// stack may stay.
func Main(m TestingM, ignored ...string) {
	code := m.Run()
	if code == 0 {
		if left := remaining(nil, ignored); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "%d goroutines outlive the tests:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
			code = 1
		}
	}
	os.Exit(code)
}

// Watch returns a function that fails the test if goroutines run that did not run when Watch was called.
func Watch(t *testing.T) (ended func()) {
	t.Helper()
	before := map[string]bool{}
	for _, stack := range stacks() {
		before[number(stack)] = true
	}
	return func() {
		t.Helper()
		if left := remaining(before, nil); len(left) > 0 {
			t.Errorf("%d goroutines have not ended:\n\n%s", len(left), strings.Join(left, "\n\n"))
		}
	}
}

// remaining waits for the end of all goroutines but those of before, and returns the stacks of those that stay.
func remaining(before map[string]bool, ignored []string) (left []string) {
	pause := time.Millisecond
	for end := time.Now().Add(patience); ; pause = min(2*pause, 100*time.Millisecond) {
		left = slices.DeleteFunc(stacks(), func(stack string) bool {
			isIgnored := slices.ContainsFunc(ignored, func(f string) bool { return strings.Contains(stack, f+"(") })
			return before[number(stack)] || isIgnored || belongsToGo(stack)
		})
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		time.Sleep(pause) //nolint:forbidigo // The end of a goroutine cannot be awaited.
	}
}

// belongsToGo reports whether the goroutine is of package testing, or stays after the first use of os/signal or runtime/trace.
func belongsToGo(stack string) bool {
	return slices.ContainsFunc([]string{
		"testing.RunTests(", "testing.runTests(", "testing.(*T).Run(", "testing.(*T).Parallel(",
		"testing.runFuzzTests(", "testing.runFuzzing(", "testing.(*F).Fuzz(",
		"os/signal.signal_recv(", "os/signal.loop(", "runtime.ensureSigM(", "runtime.ReadTrace(",
	}, func(f string) bool { return strings.Contains(stack, "\n"+f) })
}

// stacks returns the stack of each goroutine but the caller's own, which comes first.
func stacks() []string {
	text := make([]byte, 1<<16)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) {
			return strings.Split(strings.TrimSpace(string(text[:n])), "\n\n")[1:]
		}
		text = make([]byte, 2*len(text))
	}
}

// number returns the number of the goroutine, which no other one has.
func number(stack string) string {
	name, _, _ := strings.Cut(stack, " [")
	return name
}
