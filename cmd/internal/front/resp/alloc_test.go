package resp

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// TestAllocations: commands of limits that clients send allocate nothing.
func TestAllocations(t *testing.T) {
	if race.On {
		return // The race detector allocates.
	}
	store, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	pipeline := []byte(strings.Repeat("*5\r\n$11\r\nCL.THROTTLE\r\n$3\r\nkey\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n", 32))
	s := New(Config{Guard: g})
	defer s.cancel()
	w, c := &work{guard: g}, &conn{server: s}
	allocations := testing.AllocsPerRun(100, func() {
		w.out.b = w.out.b[:0]
		if n, _, ok := c.answerSome(w, pipeline); n != len(pipeline) || !ok {
			t.Fatal("the pipeline is not answered")
		}
		w.out.b = w.out.b[:0]
		w.release()
	})
	if allocations != 0 {
		t.Errorf("a pipeline of 32 allocates %v times, want 0", allocations)
	}
}
