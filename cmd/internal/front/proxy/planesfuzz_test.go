package proxy

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate/guard/report"
)

// FuzzPlanes compares both planes for conversations that the generator makes of the fuzzer's
// bytes. The planes stay in one bubble, because starting them costs more than a conversation.
func FuzzPlanes(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		f.Add(randomBytes(random))
	}
	b := new(bubble)
	f.Cleanup(b.stop)
	f.Fuzz(func(t *testing.T, data []byte) {
		if found := b.compare(t, data); found != "" {
			t.Error(found)
		}
	})
}

// randomBytes returns bytes for the generator.
func randomBytes(random *rand.Rand) []byte {
	data := make([]byte, 8+random.IntN(120))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// bubble has a pair of planes in a bubble that lasts for several tests. Its channels are made
// outside: a goroutine of the bubble that waits for them does not let its time pass.
type bubble struct {
	start    sync.Once
	inputs   chan []byte
	outcomes chan string
}

// compare sends the conversation of data. It returns the difference, or "".
func (b *bubble) compare(t *testing.T, data []byte) string {
	t.Helper()
	b.start.Do(func() {
		b.inputs, b.outcomes = make(chan []byte), make(chan string)
		go synctest.Test(t, b.run)
	})
	b.inputs <- data
	return <-b.outcomes
}

func (b *bubble) run(t *testing.T) {
	p, odd := newPair(t, planeSetup{}), corpus()
	for data := range b.inputs {
		c, _ := (&choices{data}).generated(odd)
		found := p.compare(c)
		if found != "" {
			found = c.describe() + found
		}
		b.outcomes <- found
	}
	p.stop()
	close(b.outcomes)
}

// stop ends the bubble, and waits for the end of its planes.
func (b *bubble) stop() {
	if b.inputs != nil {
		close(b.inputs)
		<-b.outcomes
	}
}

// countsPaths reports whether the fast plane counts which path its requests take.
func (p *pair) countsPaths() bool {
	for _, path := range report.Paths() {
		if p.fast.traffic.ServedBy(path) > 0 {
			return true
		}
	}
	return false
}

// fastRequests is the number of requests on the fast path.
func (p *pair) fastRequests() int64 { return int64(p.fast.traffic.ServedBy(report.PathFast)) }

// TestPlanesGenerator checks that at least 80 % of the generator's accepted requests take the
// fast path, so that the comparison is about this path.
func TestPlanesGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, odd, random := newPair(t, planeSetup{}), corpus(), rand.New(rand.NewPCG(3, 4))
		defer p.stop()
		conversations, plain, accepted := 1500/rarely(), 0, 0
		for range conversations {
			c, n := (&choices{randomBytes(random)}).generated(odd)
			standard, fast := p.converse(c)
			if found := difference(standard, fast); found != "" {
				t.Error(c.describe() + found)
			}
			plain += n
			accepted += len(standard.verdicts)
		}
		t.Logf("%d conversations with %d plain requests: %d requests were decided", conversations, plain, accepted)
		if n := p.fastRequests(); p.countsPaths() && n*100 < int64(accepted)*80 {
			t.Errorf("%d of %d requests took the fast path, want at least 80%%", n, accepted)
		}
	})
}
