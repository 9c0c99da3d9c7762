//go:build soak

package sourcetest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

// Soak changes objects for a minute while the server is killed and links fail, and compares all receivers with a fresh
// read. Then it loads many objects.
func Soak(t *testing.T, s Server) {
	t.Helper()
	t.Run("changes with kills", func(t *testing.T) { soakChanges(t, s) })
	t.Run("200,000 objects", func(t *testing.T) { soakLoad(t, s.Place(t)) })
}

func soakChanges(t *testing.T, s Server) {
	t.Helper()
	const writers, receivers = 4, 3
	p := s.Place(t)
	near := p.Open(t, Options{})
	var mirrors []*Mirror
	var faults []func()
	var heals []func()
	for range receivers {
		link := p.Link(t)
		m, _ := Follow(t, p.Through(t, link, Options{Timeout: time.Second}), nil)
		mirrors = append(mirrors, m)
		slow := func() { link.Latency(0, 100*time.Millisecond, 50*time.Millisecond) }
		faults = append(faults, link.Cut, link.Reset, link.HalfOpen, link.NoAnswers, slow)
		heals = append(heals, link.Heal)
	}
	var work sync.WaitGroup
	stop := make(chan struct{})
	var confirmed [writers]int
	for writer := range writers {
		work.Go(func() { confirmed[writer] = writeUntil(t, near, customer(fmt.Sprint(writer)), stop) })
	}
	random := rand.New(rand.NewPCG(7, 7))
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		faults[random.IntN(len(faults))]()
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond) //nolint:forbidigo // sleep: what fails does so for some time
		if random.IntN(4) == 0 {
			s.Kill()
			s.Restart()
		}
		for _, heal := range heals {
			heal()
		}
	}
	close(stop)
	work.Wait()
	total := 0
	for _, n := range confirmed {
		total += n
	}
	for _, m := range mirrors {
		m.SameAs(t, p.Open(t, Options{}))
		t.Logf("%d confirmed changes, and the receiver had %d changes and %d failures", total, len(m.Changes), len(m.Failures))
	}
}

func soakLoad(t *testing.T, p Place) {
	t.Helper()
	const n = source.MaxObjects
	var edits []Edit
	for i := range n {
		edits = append(edits, Edit{customer(fmt.Sprint("customer-", i)), "{plan: free, note: a customer of some size}"})
		if len(edits) == 100 {
			p.Commit(t, edits...)
			edits = nil
		}
	}
	for range 3 {
		began := time.Now()
		m, stop := Follow(t, p.Open(t, Options{}), nil)
		m.Until("all are there", func() bool { return len(m.Objects) == n })
		elapsed := time.Since(began)
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		t.Logf("%d objects in %v, with a heap of %d MB", n, elapsed, memory.HeapAlloc>>20)
		p.Commit(t, Edit{customer("more"), "x"})
		m.Until("one more is refused", func() bool { return failure(m, "objects") && len(m.Objects) == n })
		p.Commit(t, Edit{customer("more"), ""})
		m.UntilNow()
		stop()
	}
}
