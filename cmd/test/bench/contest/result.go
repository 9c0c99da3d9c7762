package contest

import (
	"errors"
	"slices"
)

// Result holds the measurements of a contest.
type Result struct {
	Name    string  `json:"name"`
	About   string  `json:"about"`
	Workers int     `json:"workers"`
	Rows    []Row   `json:"rows"`
	Ratios  []Ratio `json:"ratios"`
}

// Row is one side of a Result.
type Row struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Exact bool   `json:"exact"`
	// Median is the median of Rounds. Median and Rounds are in nanoseconds per operation.
	Median float64   `json:"median_ns"`
	Rounds []float64 `json:"rounds_ns"`
	// Allocs is the number of heap objects allocated per operation.
	Allocs float64 `json:"allocs"`
	// Failed is the fraction of operations that failed.
	Failed float64 `json:"failed"`
	// Meters has the order of Side.Meters.
	Meters []Metered `json:"meters,omitempty"`
}

// Ratio is the answer to a Question: a ratio, or a difference when Difference is set.
type Ratio struct {
	Interval

	Of      string `json:"of"`
	Against string `json:"against"`
	Beyond  string `json:"beyond,omitempty"`
	Meter   string `json:"meter,omitempty"`
	// Difference means that the values are differences in nanoseconds, not ratios.
	Difference bool `json:"difference,omitempty"`
	// Unit is the unit of a difference; "" means nanoseconds.
	Unit    string    `json:"unit,omitempty"`
	Rounds  []float64 `json:"rounds"`
	Bar     float64   `json:"bar,omitempty"`
	Verdict Verdict   `json:"verdict"`
}

// result makes one row of the samples of each side, and answers the questions.
func (c *Contest) result(samples [][]sample) (Result, error) {
	r := Result{Name: c.Name, About: c.About, Workers: c.Workers}
	for i, side := range c.Sides {
		row := Row{Name: side.Name, Kind: side.Kind, Exact: !side.Inexact, Meters: side.metered(samples[i])}
		var allocs, failed []float64
		for _, s := range samples[i] {
			row.Rounds = append(row.Rounds, s.ns)
			allocs, failed = append(allocs, s.allocs), append(failed, s.failed)
		}
		row.Median, row.Allocs, row.Failed = Median(row.Rounds), Median(allocs), Median(failed)
		r.Rows = append(r.Rows, row)
	}
	for _, q := range c.Questions {
		answer, err := c.answer(q, r.Rows)
		if err != nil {
			return Result{}, err
		}
		if !r.has(answer) {
			r.Ratios = append(r.Ratios, answer)
		}
	}
	return r, nil
}

// has reports whether the result already has this ratio. A question for the fastest peer
// and a question for the same peer by name give equal ratios.
func (r *Result) has(a Ratio) bool {
	return slices.ContainsFunc(r.Ratios, func(b Ratio) bool {
		return a.Of == b.Of && a.Against == b.Against && a.Beyond == b.Beyond && a.Meter == b.Meter && a.Difference == b.Difference
	})
}

func (c *Contest) answer(q Question, rows []Row) (Ratio, error) {
	above, err := c.side(q.Of)
	if err != nil {
		return Ratio{}, err
	}
	var below int
	if q.Against == FastestExact {
		below, err = fastestExact(rows)
	} else {
		below, err = c.side(q.Against)
	}
	if err != nil {
		return Ratio{}, err
	}
	if q.Meter != "" {
		return compareMeters(q, rows[above], rows[below])
	}
	if q.Beyond == "" {
		return q.compare(rows[above].Name, rows[below].Name, rows[above].Rounds, rows[below].Rounds), nil
	}
	base, err := c.side(q.Beyond)
	if err != nil {
		return Ratio{}, err
	}
	r := q.compare(rows[above].Name, rows[below].Name, beyond(rows[above], rows[base]), beyond(rows[below], rows[base]))
	r.Beyond = q.Beyond
	return r, nil
}

// beyond returns, for each round, the time of a side minus the time of the base.
func beyond(of, base Row) []float64 {
	more := make([]float64, len(of.Rounds))
	for i := range more {
		more[i] = of.Rounds[i] - base.Rounds[i]
	}
	return more
}

// compare returns the ratio, or the difference for q.Difference.
func (q *Question) compare(of, against string, above, below []float64) Ratio {
	if q.Difference {
		return Subtract(of, against, above, below, q.Bar)
	}
	return Compare(of, against, above, below, q.Bar)
}

// Compare computes the ratio of each round, and judges the median ratio.
func Compare(of, against string, above, below []float64, bar float64) Ratio {
	r := Ratio{Of: of, Against: against, Bar: bar}
	for i := range above {
		r.Rounds = append(r.Rounds, above[i]/below[i])
	}
	r.Interval = MedianInterval(r.Rounds)
	r.Verdict = Judge(r.Interval, bar)
	return r
}

// Subtract computes the difference of each round, and judges the median difference.
func Subtract(of, against string, above, below []float64, bar float64) Ratio {
	r := Ratio{Of: of, Against: against, Difference: true, Bar: bar}
	for i := range above {
		r.Rounds = append(r.Rounds, above[i]-below[i])
	}
	r.Interval = MedianInterval(r.Rounds)
	r.Verdict = Judge(r.Interval, bar)
	return r
}

// fastestExact returns the index of the exact peer with the smallest median time.
func fastestExact(rows []Row) (int, error) {
	best := -1
	for i, row := range rows {
		if row.Kind == Peer && row.Exact && (best < 0 || row.Median < rows[best].Median) {
			best = i
		}
	}
	if best < 0 {
		return 0, errors.New("contest: the contest has no exact peer: add one, or name a side in Against")
	}
	return best, nil
}

// Median returns the middle value, or the mean of the two middle values.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
