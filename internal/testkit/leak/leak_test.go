package leak

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func blocked(release <-chan struct{}) { <-release }

func TestWatch(t *testing.T) {
	release, early := make(chan struct{}), make(chan struct{})
	defer close(release)
	go blocked(release)
	ended := Watch(t)
	go blocked(early)
	time.AfterFunc(10*time.Millisecond, func() { close(early) })
	ended() // Waits for the second goroutine, and does not count the first.
}

func TestStacks(t *testing.T) {
	release := make(chan struct{})
	began := make(chan struct{})
	go func() {
		close(began)
		blocked(release)
	}()
	<-began
	at := func() int {
		return slices.IndexFunc(stacks(), func(stack string) bool { return strings.Contains(stack, "leak.blocked(") })
	}
	for at() < 0 {
		runtime.Gosched()
	}
	stack := stacks()[at()]
	if belongsToGo(stack) || !strings.HasPrefix(number(stack), "goroutine ") {
		t.Errorf("%q is the number, and the stack is taken for one of Go:\n%s", number(stack), stack)
	}
	close(release)
	if left := remaining(nil, nil); len(left) > 0 {
		t.Errorf("stay: %s", left)
	}
}
