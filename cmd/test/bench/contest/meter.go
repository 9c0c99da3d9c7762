package contest

import (
	"fmt"
	"slices"
	"time"
)

// Meter reads a counter of time used, usually processor time.
type Meter struct {
	Name string
	Read func() (time.Duration, error)
}

// Metered is the result of one meter.
type Metered struct {
	Name string `json:"name"`
	// Median is the median of Rounds. Median and Rounds are in nanoseconds per operation.
	Median float64   `json:"median_ns"`
	Rounds []float64 `json:"rounds_ns"`
}

func (s *Side) readMeters() ([]time.Duration, error) {
	var read []time.Duration
	for _, m := range s.Meters {
		d, err := m.Read()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", s.Name, m.Name, err)
		}
		read = append(read, d)
	}
	return read, nil
}

// used returns the increase of each meter between two readings, in nanoseconds per
// operation.
func used(from, to []time.Duration, operations float64) []float64 {
	var each []float64
	for i := range to {
		each = append(each, float64((to[i]-from[i]).Nanoseconds())/operations)
	}
	return each
}

// metered collects the samples of each meter of the side.
func (s *Side) metered(samples []sample) []Metered {
	var all []Metered
	for i, m := range s.Meters {
		one := Metered{Name: m.Name}
		for _, got := range samples {
			one.Rounds = append(one.Rounds, got.meters[i])
		}
		one.Median = Median(one.Rounds)
		all = append(all, one)
	}
	return all
}

// compareMeters answers a question about the meter q.Meter of two sides.
func compareMeters(q Question, of, against Row) (Ratio, error) {
	above, below := of.meter(q.Meter), against.meter(q.Meter)
	if above == nil || below == nil {
		return Ratio{}, fmt.Errorf("contest: the meter %q is missing on %s or %s: add it to both sides", q.Meter, of.Name, against.Name)
	}
	if !q.Difference && slices.Contains(below.Rounds, 0) {
		return Ratio{}, fmt.Errorf("contest: the meter %q of %s did not increase in a round: use longer slices", q.Meter, against.Name)
	}
	r := q.compare(of.Name, against.Name, above.Rounds, below.Rounds)
	r.Meter = q.Meter
	return r, nil
}

// meter returns the result of the named meter, or nil when the side has no such meter.
func (r *Row) meter(name string) *Metered {
	i := slices.IndexFunc(r.Meters, func(m Metered) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Meters[i]
}
