package contest

import (
	"fmt"
	"slices"
	"time"
)

// Meter reads what has been used so far: processor time, as a rule.
type Meter struct {
	Name string
	Read func() (time.Duration, error)
}

// Metered is what a meter has shown.
type Metered struct {
	Name string `json:"name"`
	// Median is in nanoseconds per operation, and Rounds are what it was found from.
	Median float64   `json:"median_ns"`
	Rounds []float64 `json:"rounds_ns"`
}

// readMeters reads all meters of the side.
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

// used gives what was used between two readings, per operation.
func used(from, to []time.Duration, operations float64) []float64 {
	var each []float64
	for i := range to {
		each = append(each, float64((to[i]-from[i]).Nanoseconds())/operations)
	}
	return each
}

// metered sums up what the side's meters have shown.
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

// compareMeters compares what a meter has shown of two sides.
func compareMeters(q Question, of, against Row) (Ratio, error) {
	above, below := of.meter(q.Meter), against.meter(q.Meter)
	if above == nil || below == nil {
		return Ratio{}, fmt.Errorf("contest: %s and %s do not both have a meter %q", of.Name, against.Name, q.Meter)
	}
	if !q.Difference && slices.Contains(below.Rounds, 0) {
		return Ratio{}, fmt.Errorf("contest: the meter %q of %s shows nothing in a round: measure longer", q.Meter, against.Name)
	}
	r := q.compare(of.Name, against.Name, above.Rounds, below.Rounds)
	r.Meter = q.Meter
	return r, nil
}

// meter finds what a meter has shown; nil if the side has none of that name.
func (r *Row) meter(name string) *Metered {
	i := slices.IndexFunc(r.Meters, func(m Metered) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Meters[i]
}
