package ring

import (
	"cmp"
	"slices"
)

// placeOf gives the place of a series, and takes one if the Ring has a free one.
func (r *Ring) placeOf(s *Series) (i int32, found bool) {
	if s.place > 0 {
		return s.place - 1, true
	}
	if !s.Pinned && r.movable >= r.most || s.Pinned && len(r.names)-r.movable >= Extra {
		r.wait(s)
		return 0, false
	}
	return r.take(s), true
}

// take gives a series the place of its name, or a free one.
func (r *Ring) take(s *Series) int32 {
	name := s.Name.String()
	if i, known := r.names[name]; known { // For example of a rule that was removed, and is there again.
		r.places[i].series.place = 0
		r.places[i].series, s.place = s, i+1
		return i
	}
	i := r.freePlace()
	from := r.began
	if s.late {
		from = r.now - r.gap + 1
	}
	r.places[i] = place{series: s, name: name, from: from, last: r.now}
	s.place = i + 1
	r.names[name] = i
	if !s.Pinned {
		r.movable++
	}
	return i
}

func (r *Ring) freePlace() int32 {
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		return i
	}
	i := int32(len(r.places))
	if i%lanes == 0 {
		r.chunks = append(r.chunks, new(chunk))
	}
	r.places = append(r.places, place{})
	return i
}

// release frees a place. Its values must have been cleared.
func (r *Ring) release(i int32) {
	p := &r.places[i]
	p.series.place = 0
	if !p.series.Pinned {
		r.movable--
	}
	delete(r.names, p.name)
	*p = place{}
	r.free = append(r.free, i)
}

// giveBack frees the places of series that had no value above 0 for a day: all their steps are 0.
func (r *Ring) giveBack() {
	for i := range r.places {
		if p := &r.places[i]; p.series != nil && r.now-p.last > day+fiveMinutes {
			r.release(int32(i))
		}
	}
}

// othersOf gives the series that counts for all series of a metric without a place.
func (r *Ring) othersOf(s *Series) *Series {
	o, known := r.others[s.Name.Metric]
	if !known {
		o = &Series{Name: Name{Prefix: Others, Metric: s.Name.Metric}, Pinned: true}
		r.others[s.Name.Metric] = o
	}
	return o
}

// wait notes that a series would have a place.
func (r *Ring) wait(s *Series) {
	if s.recent > 0 && !s.Pinned && !s.waits {
		s.waits = true
		r.waiting = append(r.waiting, s)
	}
}

// scoreShare is the part of a score that one turn takes away: half of it goes in two minutes.
const scoreShare = 16

// scoreRecent counts towards the score of a series.
func (r *Ring) scoreRecent(s *Series, n uint32) {
	if r.most == 0 {
		return
	}
	r.age(s)
	s.recent = saturated(uint64(s.recent) + uint64(n))
}

// age brings the score of a series to the present turn.
func (r *Ring) age(s *Series) {
	missed := r.turn - s.scored
	if missed == 0 {
		return
	}
	s.score = saturated(uint64(s.score) + uint64(s.recent))
	s.recent, s.scored = 0, r.turn
	for ; missed > 0 && s.score > 0; missed-- {
		s.score -= (s.score + scoreShare - 1) / scoreShare
	}
}

// turns ends a number of ten seconds: busy series without a place take those of quiet ones, whose counts move into others.
func (r *Ring) turns(n uint32) {
	r.turn += n
	if len(r.waiting) == 0 {
		return
	}
	busy := r.waiting
	for _, s := range busy {
		r.age(s)
		s.waits = false
	}
	slices.SortFunc(busy, func(a, b *Series) int { return cmp.Compare(b.score, a.score) })
	quiet := r.quietest()
	for _, s := range busy {
		if quiet = r.settle(s, quiet); quiet == nil {
			break
		}
	}
	clear(busy)
	r.waiting = busy[:0]
}

// settle gives a busy series a place, if need be that of the first of the quiet ones. It returns the quiet series that are left, and nil if
// all others are too busy.
func (r *Ring) settle(s *Series, quiet []*Series) []*Series {
	for len(quiet) > 0 && quiet[0].place == 0 {
		quiet = quiet[1:]
	}
	_, named := r.names[s.Name.String()]
	switch {
	case s.place > 0:
	case named, r.movable < r.most:
		r.take(s)
	case len(quiet) == 0 || !busier(s, quiet[0]):
		return nil
	default:
		r.moveOut(quiet[0].place - 1)
		r.take(s)
	}
	return quiet
}

// busier says that a series without a place is worth the place of another. A factor keeps two similar series from taking turns.
func busier(s, than *Series) bool { return s.score/2 > than.score }

// quietest lists the series that may have to move, the quietest first.
func (r *Ring) quietest() []*Series {
	all := make([]*Series, 0, r.movable)
	for i := range r.places {
		if s := r.places[i].series; s != nil && !s.Pinned {
			r.age(s)
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *Series) int { return cmp.Compare(a.score, b.score) })
	return all
}

// moveOut adds the counts of a series to others, and frees its place. Values of a gauge have no sum: they are dropped.
func (r *Ring) moveOut(i int32) {
	s := r.places[i].series
	to := int32(-1)
	if !s.Gauge {
		if found, known := r.placeOf(r.othersOf(s)); known {
			to = found
			r.places[to].last = max(r.places[to].last, r.places[i].last)
		}
	}
	from, lane := r.chunks[i/lanes], i%lanes
	for column := range from {
		if to >= 0 {
			v := &r.chunks[to/lanes][column][to%lanes]
			*v = saturated(uint64(*v) + uint64(from[column][lane]))
		}
		from[column][lane] = 0
	}
	s.late = true
	r.release(i)
}
