package limiter

import (
	"fmt"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// state is the state of a Single that is not a bucket: a cell, the ring of a log, or the
// counters of a sliding window, under one lock. A log grows with its units, up to Count
// entries of 16 bytes.
type state struct {
	mu      sync.Mutex
	cell    limit.Cell
	log     limit.Log
	windows limit.Windows
}

// firstRing is the length of a log's first ring: four entries.
const firstRing = 4 * limit.EntryWords

// defaultLogMemory bounds the log of a Single whose Config has no MaxMemory.
const defaultLogMemory = 64 << 20

// newState returns the state of a plan. It returns an error if a log can exceed maxMemory.
// A maxMemory of 0 means 64 MiB.
func newState(p *limit.Plan, maxMemory int64) (*state, error) {
	s := &state{}
	if maxMemory == 0 {
		maxMemory = defaultLogMemory
	}
	switch p.Policy.Algorithm {
	case headgate.SlidingWindow:
		s.windows.Counters = make([]int64, p.WindowCounters())
	case headgate.SlidingLog:
		if most := int64(p.LogBound()+1) * limit.EntryWords * 8; most > maxMemory {
			return nil, fmt.Errorf("limiter: a log of %s takes up to %d bytes, and MaxMemory allows %d: "+
				"raise MaxMemory, lower the limit, or use another algorithm", p.Policy.Limit, most, maxMemory)
		}
	default:
	}
	return s, nil
}

// decide judges n units at the time of the clock, and counts them unless the mode is Peek.
func (s *state) decide(p *limit.Plan, clock func() headgate.Instant, n int64, mode headgate.OpKind, d *headgate.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	var draw limit.Draw
	switch p.Policy.Algorithm {
	case headgate.SlidingLog:
		p.JudgeLog(&s.log, now, n, d)
	case headgate.SlidingWindow:
		p.JudgeWindows(&s.windows, now, n, d)
	default:
		cell := s.cell // A Peek must not change the state.
		p.JudgeCell(&cell, now, n, mode, &draw)
		p.Explain(&draw, d)
		if mode != headgate.Peek {
			s.cell = cell
		}
	}
	if mode != headgate.Peek && (d.Verdict != headgate.Deny || p.CountsRefused(d.Reason != headgate.Never)) {
		s.take(p, now, n, &draw, d)
	}
	d.Receipt = headgate.Receipt{}
}

// take counts the units that decide has just judged.
func (s *state) take(p *limit.Plan, now headgate.Instant, n int64, draw *limit.Draw, d *headgate.Decision) {
	switch p.Policy.Algorithm {
	case headgate.SlidingLog:
		if n > 0 && !s.log.Room() {
			s.growLog(p)
		}
		p.TakeLog(&s.log, now, d)
	case headgate.SlidingWindow:
		p.TakeWindows(&s.windows, now, d)
	default:
		p.TakeCell(&s.cell, draw)
	}
}

// growLog doubles the ring, up to one entry more than the plan keeps.
func (s *state) growLog(p *limit.Plan) {
	words := min(max(firstRing, 2*len(s.log.Ring)), (p.LogBound()+1)*limit.EntryWords)
	words = max(words, (s.log.Len+1)*limit.EntryWords)
	s.log.CopyTo(make([]int64, words))
}
