package tally

import (
	"time"

	"github.com/headgate/headgate"
)

const (
	// maxTicks bounds the times that a peak remembers. Beyond that, times within a 128th of the window count as the latest of them,
	// and a peak may be that much too high.
	maxTicks  = 256
	tickParts = maxTicks / 2
	tickBytes = 16
	peakBytes = 56
)

// Peak finds the most units in any (t-W, t] for one W.
type Peak struct {
	ticks       []tick // the times in the window, from the position from on
	from        int
	units, most int64
}

// tick is a time with its units.
type tick struct {
	at    headgate.Instant
	units int64
}

// add counts units at a time. A time before those of earlier calls counts as the latest of them. add returns by how many ticks the
// memory grew.
func (p *Peak) add(at headgate.Instant, per time.Duration, units int64) (grown int) {
	if n := len(p.ticks); n > p.from && p.ticks[n-1].at > at {
		at = p.ticks[n-1].at // A request that waited is counted at its departure.
	}
	for p.from < len(p.ticks) && p.ticks[p.from].at <= at.Add(-per) {
		p.units -= p.ticks[p.from].units
		p.from++
	}
	if p.from == len(p.ticks) {
		p.ticks, p.from = p.ticks[:0], 0
	}
	p.units += units
	p.most = max(p.most, p.units)
	if n := len(p.ticks); n > 0 && p.ticks[n-1].at == at {
		p.ticks[n-1].units += units
		return 0
	}
	if len(p.ticks) == cap(p.ticks) {
		grown = p.makeRoom(per)
	}
	p.ticks = append(p.ticks, tick{at, units})
	return grown
}

// makeRoom frees places of ticks, or doubles them.
func (p *Peak) makeRoom(per time.Duration) (grown int) {
	before := cap(p.ticks)
	switch live := len(p.ticks) - p.from; {
	case live <= before/2 && before > 0:
		p.ticks, p.from = p.ticks[:copy(p.ticks, p.ticks[p.from:])], 0
	case before < maxTicks:
		larger := make([]tick, live, max(2, 2*before))
		copy(larger, p.ticks[p.from:])
		p.ticks, p.from = larger, 0
	default:
		p.merge(max(1, headgate.Instant(per/tickParts)))
	}
	return cap(p.ticks) - before
}

// merge joins the ticks of equal parts of the window.
func (p *Peak) merge(part headgate.Instant) {
	kept := p.ticks[:0]
	for _, t := range p.ticks[p.from:] {
		if n := len(kept); n > 0 && kept[n-1].at/part == t.at/part {
			kept[n-1] = tick{t.at, kept[n-1].units + t.units}
			continue
		}
		kept = append(kept, t)
	}
	p.ticks, p.from = kept, 0
}
