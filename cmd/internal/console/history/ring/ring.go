// Package ring keeps series of counts and of gauges in a bounded memory: one value a second for five minutes, one for ten seconds for an
// hour, and one for five minutes for a day.
//
// A Ring is not safe for concurrent use, and reads no clock: the caller passes the time.
package ring

import "math"

// Ring has the values of all series. Make one with New.
type Ring struct {
	most    int // places for series that are not pinned
	movable int // places that such series have
	places  []place
	chunks  []*chunk
	free    []int32
	names   map[string]int32
	others  map[string]*Series
	// waiting are the series without a place that have counted since the last turn.
	waiting []*Series
	turn    uint32 // the number of ends of ten seconds

	began   int64 // the start of the first second; 0 before the first Advance
	now     int64 // the start of the last second that has been entered
	gap     int64 // the seconds, now included, that counts are divided among
	covered [steps]bool
}

// place is what a Ring knows of a series that has a place.
type place struct {
	series *Series // nil for a free place
	name   string
	from   int64 // the first second whose counts are all here
	last   int64 // the last second with a value above 0
}

// lanes is the number of series in a chunk.
const lanes = 64

// chunk has the values of lanes series. The values of one step stand together, because each step is cleared for all series.
type chunk [steps][lanes]uint32

// Extra is the number of places for pinned series and for others, beside those that New counts.
const Extra = 256

// Name is the name of a series, in three parts: rule, search and refused are the series rule.search.refused. Of may be "".
type Name struct{ Prefix, Of, Metric string }

// String joins the parts.
func (n Name) String() string {
	if n.Of == "" {
		return n.Prefix + n.Metric
	}
	return n.Prefix + "." + n.Of + "." + n.Metric
}

// Others is the prefix of the series that have the counts of all series without a place, by metric: others.refused.
const Others = "others."

// Series is a series of counts, or of the values of a gauge. It takes a place in the Ring at its first value above 0. The caller keeps
// the Series, and must not copy it after its first value.
type Series struct {
	Name Name
	// Gauge has values rather than counts. Pinned keeps its place: there are at most Extra such series.
	Gauge, Pinned bool

	late   bool   // counts of it are in others
	waits  bool   // is in Ring.waiting
	place  int32  // its index + 1; 0 without a place
	score  uint32 // how much it has counted lately, as of the turn scored
	recent uint32 // counted since the last turn
	scored uint32
}

// New makes a Ring with places for a number of series, beside those that are pinned. The memory is taken as series come.
func New(series int) *Ring {
	return &Ring{most: series, names: map[string]int32{}, others: map[string]*Series{}}
}

// maxStepBack is by how many seconds the clock may step back without a new beginning. Until it has caught up, counts stay in the last
// second.
const maxStepBack = 5

// maxSpread is the most seconds without an Advance among which counts are divided. A longer gap has no data.
const maxSpread = 5

// Advance begins to count what has happened until end, in Unix seconds: since the last Advance, or in the second before. It returns the
// number of seconds, and 0 if the clock has not advanced. A clock that has stepped back begins anew: all series are empty.
func (r *Ring) Advance(end int64) (seconds int64) {
	second := end - 1
	switch {
	case r.began == 0 || second < r.now-maxStepBack:
		r.restart(second)
		return 1
	case second <= r.now:
		return 0
	}
	seconds = second - r.now
	before := r.now
	if r.gap = seconds; seconds > maxSpread {
		r.gap = 1
	}
	r.now = second
	for t := range tierCount {
		r.enter(t, before)
	}
	if before/tenSeconds != second/tenSeconds {
		r.turns(uint32(min(second/tenSeconds-before/tenSeconds, math.MaxUint16)))
	}
	if before/fiveMinutes != second/fiveMinutes {
		r.giveBack()
	}
	return seconds
}

// restart empties all series.
func (r *Ring) restart(second int64) {
	for i := range r.places {
		if s := r.places[i].series; s != nil {
			s.place = 0
		}
	}
	*r = Ring{
		most: r.most, names: map[string]int32{}, others: map[string]*Series{}, turn: r.turn, waiting: r.waiting,
		began: second, now: second, gap: 1,
	}
	for t := range tierCount {
		r.covered[t.column(second)] = true
	}
}

// enter clears the steps of a tier that have begun after a second.
func (r *Ring) enter(t Tier, before int64) {
	first, last := before/t.Step()+1, r.now/t.Step()
	first = max(first, last-t.Steps()+1)
	for step := first; step <= last; step++ {
		column := t.column(step * t.Step())
		for _, c := range r.chunks {
			c[column] = [lanes]uint32{}
		}
		r.covered[column] = false
	}
	for second := r.now - r.gap + 1; second <= r.now; second++ {
		r.covered[t.column(second)] = true
	}
}

// Add counts n in the present second, or in the seconds since the Advance before.
func (r *Ring) Add(s *Series, n uint64) {
	if n == 0 || r.began == 0 {
		return
	}
	count := saturated(n)
	r.scoreRecent(s, count)
	i, found := r.placeOf(s)
	if !found {
		s.late = true
		s = r.othersOf(s)
		if i, found = r.placeOf(s); !found {
			return
		}
	}
	r.places[i].last = r.now
	each := count / uint32(r.gap)
	for second := r.now - r.gap + 1; second < r.now && each > 0; second++ {
		r.add(i, second, each)
	}
	r.add(i, r.now, count-each*uint32(r.gap-1))
}

func (r *Ring) add(i int32, second int64, n uint32) {
	c, lane := r.chunks[i/lanes], i%lanes
	for t := range tierCount {
		v := &c[t.column(second)][lane]
		*v = saturated(uint64(*v) + uint64(n))
	}
}

// Set sets the value of a gauge in the present second. The value of a longer step is the last one in it.
func (r *Ring) Set(s *Series, n uint64) {
	if n == 0 && s.place == 0 || r.began == 0 {
		return
	}
	if n > 0 {
		r.scoreRecent(s, 1)
	}
	i, found := r.placeOf(s)
	if !found {
		return
	}
	if n > 0 {
		r.places[i].last = r.now
	}
	c, lane := r.chunks[i/lanes], i%lanes
	for second := r.now - r.gap + 1; second <= r.now; second++ {
		for t := range tierCount {
			c[t.column(second)][lane] = saturated(n)
		}
	}
}

func saturated(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// Series is the number of series that have a place.
func (r *Ring) Series() int { return len(r.names) }
