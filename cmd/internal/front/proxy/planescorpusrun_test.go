package proxy

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
)

// pair is a standard and a fast plane with the same setup.
type pair struct{ standard, fast *plane }

func newPair(tb testing.TB, s planeSetup) *pair {
	tb.Helper()
	honest := s
	honest.tamper = tampering{}
	return &pair{newPlane(tb, false, honest), newPlane(tb, true, s)}
}

func (p *pair) stop() {
	p.standard.stop()
	p.fast.stop()
}

// converse sends a conversation to both planes.
func (p *pair) converse(c *conversation) (standard, fast *transcript) {
	if c.ending == endSilence {
		p.forget()
	}
	began := time.Now()
	standard, fast = p.standard.converse(c), p.fast.converse(c)
	if time.Since(began) > idleUpstream/2 {
		p.forget()
	}
	return standard, fast
}

// forget closes the idle connections to both upstreams. After a long time on the clock, one
// plane could have lost its idle connection and the other could not, because one plane
// converses after the other.
func (p *pair) forget() {
	p.standard.forget()
	p.fast.forget()
}

// compare sends a conversation to both planes. It returns the difference, or "".
func (p *pair) compare(c *conversation) string { return difference(p.converse(c)) }

// check reports a difference as an error.
func (p *pair) check(t *testing.T, c *conversation) {
	t.Helper()
	if found := p.compare(c); found != "" {
		t.Error(c.describe() + found)
	}
}

// TestPlanesCorpus sends the corpus to both planes, whole.
func TestPlanesCorpus(t *testing.T) {
	all := corpus()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, planeSetup{})
		defer p.stop()
		for _, c := range all {
			p.check(t, c)
		}
	})
	if len(all) < 300 {
		t.Errorf("the corpus has %d conversations, want at least 300", len(all))
	}
	t.Logf("%d conversations", len(all))
}

// splitStride is the distance between the offsets at which a quick test splits a conversation.
// The offsets of two conversations differ, so that together they cover every offset.
const splitStride = 29

// TestPlanesSplits sends the corpus in two pieces. It splits the first conversations at every
// offset, and the others at some.
func TestPlanesSplits(t *testing.T) { sendSplits(t, splitStride) }

// sendSplits sends the corpus in two pieces, split at each stride-th offset.
func sendSplits(t *testing.T, stride int) {
	t.Helper()
	stride *= rarely()
	all := corpus()
	sharded(t, func(t *testing.T, shard, shards int) {
		t.Helper()
		p := newPair(t, planeSetup{})
		defer p.stop()
		for i := shard; i < len(all); i += shards {
			step := stride
			if i%97 == 0 && !race.On {
				step = 1
			}
			for at := 1 + i%step; at < len(strings.Join(all[i].pieces, "")); at += step {
				p.check(t, all[i].splitAt(at))
			}
		}
	})
}

// rarely is the factor by which tests try fewer inputs under the race detector.
func rarely() int {
	if race.On {
		return 10
	}
	return 1
}

// sharded runs f in a bubble for each core.
func sharded(t *testing.T, f func(t *testing.T, shard, shards int)) {
	t.Helper()
	shards := runtime.GOMAXPROCS(0)
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { f(t, shard, shards) })
		})
	}
}
