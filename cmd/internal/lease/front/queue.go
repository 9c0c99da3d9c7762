package front

import (
	"github.com/headgate/headgate/internal/lease/state"
)

// place is a claim of a holder. The resource is empty for errors of whole reports.
type place struct{ holder, resource string }

// answer is what a holder has not got about one claim.
type answer struct {
	place

	lease   state.Lease
	given   bool // lease is set
	refused *state.Error
	seq     uint64 // of the refused report
}

// answerBytes is the memory of an answer beside its texts, with its places in the queue.
const answerBytes = 400

func (a *answer) bytes() int64 {
	n := answerBytes + len(a.holder) + len(a.resource) + 8*len(a.lease.Parts)
	if a.refused != nil {
		n += len(a.refused.Text) + len(a.refused.Field)
	}
	return int64(n)
}

// queue has what a stream has not sent, once for each claim, in order. It is not safe for concurrent use.
type queue struct {
	order []*answer
	at    map[place]*answer
	bytes int64
}

// entry returns the answer of a claim, which may be a new one.
func (q *queue) entry(p place) *answer {
	if a := q.at[p]; a != nil {
		q.bytes -= a.bytes()
		return a
	}
	if q.at == nil {
		q.at = make(map[place]*answer)
	}
	a := &answer{place: p}
	q.at[p] = a
	q.order = append(q.order, a)
	return a
}

// lease adds a lease. It replaces the one that waits for the same claim: a push keeps the Seq and the length of an answer
// before it, so that the holder learns of its end.
func (q *queue) lease(holder string, l *state.Lease) {
	a := q.entry(place{holder, l.Resource})
	next := *l
	if a.given && next.Seq == 0 {
		next.Seq, next.Length = a.lease.Seq, a.lease.Length
	}
	a.lease, a.given = next, true
	q.bytes += a.bytes()
}

// refuse adds a refusal.
func (q *queue) refuse(holder string, seq uint64, err *state.Error) {
	a := q.entry(place{holder, err.Resource})
	a.refused, a.seq = err, seq
	q.bytes += a.bytes()
}

// take empties the queue.
func (q *queue) take() []*answer {
	all := q.order
	*q = queue{}
	return all
}
