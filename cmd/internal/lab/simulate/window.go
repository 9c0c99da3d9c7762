package simulate

import (
	"github.com/headgate/headgate"
)

// window counts the units of one key in the last W, exactly: it keeps each of them.
type window struct {
	entries []entry // a ring
	first   int
	n       int
	units   int64
}

type entry struct {
	at    headgate.Instant
	units int64
}

// at drops what is as old as per at now, or older, and returns the rest.
func (w *window) at(now headgate.Instant, per int64) int64 {
	for w.n > 0 && int64(now-w.entries[w.first].at) >= per {
		w.units -= w.entries[w.first].units
		w.first = (w.first + 1) % len(w.entries)
		w.n--
	}
	return w.units
}

// add counts units at now, which is not before the entries.
func (w *window) add(now headgate.Instant, units int64) {
	w.units += units
	if w.n > 0 {
		if last := &w.entries[(w.first+w.n-1)%len(w.entries)]; last.at == now {
			last.units += units
			return
		}
	}
	if w.n == len(w.entries) {
		grown := make([]entry, max(8, 2*w.n))
		for i := range w.n {
			grown[i] = w.entries[(w.first+i)%w.n]
		}
		w.entries, w.first = grown, 0
	}
	w.entries[(w.first+w.n)%len(w.entries)] = entry{now, units}
	w.n++
}

// bucket checks the promise of token_bucket: in any interval of length T, at most Burst + rate x T units are admitted.
type bucket struct {
	level float64 // the most units above the rate in any interval that ends at last
	last  headgate.Instant
}

// add admits units at now, and returns how many units are above the promise.
func (b *bucket) add(now headgate.Instant, units int64, l headgate.Limit) float64 {
	passed := float64(now-b.last) * float64(l.Count) / float64(l.Per)
	b.level = max(b.level-passed, 0) + float64(units)
	b.last = now
	burst := l.Burst
	if burst == 0 {
		burst = l.Count
	}
	return b.level - float64(burst)
}
