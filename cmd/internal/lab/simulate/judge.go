package simulate

import (
	"math"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
)

// judge follows the decisions of one limit, and compares each with the exact log of what this run itself admitted. So one error causes
// no others.
type judge struct {
	limit    headgate.Limit
	admitted []window // by key
	buckets  []bucket // by key
	result   Result
}

// Result is what one algorithm did with the traffic.
type Result struct {
	Algorithm  string `help:"The algorithm of the limit." json:"algorithm"`
	SubWindows int64  `help:"N of sliding_window." json:"sub_windows,omitempty"`

	Reached     float64 `help:"The virtual time that was played, in seconds." json:"reached"`
	Requests    int64   `help:"Requests that arrived, with those that came back after a refusal." json:"requests"`
	Admitted    int64   `help:"Requests that passed, at once or after a wait." json:"admitted"`
	Waited      int64   `help:"Requests that passed after a wait." json:"waited"`
	Refused     int64   `help:"Requests that were refused." json:"refused"`
	OfLog       int64   `help:"Requests that pass when counted exactly, with the same traffic." json:"sliding_log_admitted"`
	FalseAllows int64   `help:"Requests that passed although this run had used up the limit in the period before." json:"false_allows"`
	FalseDenies int64   `help:"Requests that were refused although the limit was not used up." json:"false_denies"`
	WorstExcess int64   `help:"The most units above the limit that were admitted in any period (t-W, t], by key." json:"worst_excess"`
	KeyBytes    int64   `help:"The memory of one key, at most." json:"key_bytes"`
	Evictions   int64   `help:"Counters that were dropped because the memory was full." json:"evictions"`

	Promise *Promise `help:"The promise of token_bucket." json:"promise,omitempty"`

	NanosecondsPerDecision float64 `help:"With --measure: the time of a decision here." json:"nanoseconds_per_decision,omitempty"`
}

// Promise says whether at most Burst + rate x T units were admitted in any interval of length T.
type Promise struct {
	Held      bool    `help:"Whether the promise held." json:"held"`
	MostAbove float64 `help:"The most units above Burst + rate x T in any interval T; at most 0 if the promise held." json:"most_above"`
}

func newJudge(l headgate.Limit, keys int64) *judge {
	return &judge{
		limit: l, admitted: make([]window, keys), buckets: make([]bucket, keys),
		result: Result{Promise: &Promise{MostAbove: -math.MaxFloat64}},
	}
}

// arrived implements watcher.
func (j *judge) arrived(*call, headgate.Instant) { j.result.Requests++ }

// decided implements watcher.
func (j *judge) decided(c *call, now headgate.Instant) {
	w, cost := &j.admitted[c.key], max(c.cost, 1)
	used := w.at(now, int64(j.limit.Per))
	fits := used+cost <= j.limit.Count
	if c.Verdict != headgate.Allow {
		j.result.Refused++
		if fits {
			j.result.FalseDenies++
		}
		return
	}
	j.result.Admitted++
	if c.Waited > 0 {
		j.result.Waited++
	}
	if !fits {
		j.result.FalseAllows++
	}
	w.add(now, cost)
	j.result.WorstExcess = max(j.result.WorstExcess, w.units-j.limit.Count)
	j.result.Promise.MostAbove = max(j.result.Promise.MostAbove, j.buckets[c.key].add(now, cost, j.limit))
}

// roundings bounds what the arithmetic of a bucket loses.
const roundings = 1e-6

// finish completes the result after a run.
func (j *judge) finish(algorithm headgate.Algorithm, e *engine.Engine) *Result {
	r := &j.result
	r.Evictions = int64(e.Evictions())
	if algorithm != headgate.TokenBucket {
		r.Promise = nil
		return r
	}
	r.Promise.Held = r.Promise.MostAbove <= roundings
	if r.Promise.Held {
		r.Promise.MostAbove = min(r.Promise.MostAbove, 0)
	}
	return r
}
