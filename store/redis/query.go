package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
	"github.com/headgate/headgate/internal/store/script"
)

// query is one caller's request to one node: whole groups, with keys in one slot. A query keeps no
// memory of its caller, because the caller may return before the answer.
type query struct {
	ops       []headgate.Op // with empty keys
	plans     []*script.Plan
	places    []script.Place
	least     []int64 // the smallest grant of each Op; empty for decisions
	decisions []headgate.Decision
	slot      uint16
	weight    int // in the unit of maxBatch
	first     int // index of its first group in its call
	// queue admitted the query at began. deadline is the deadline of the
	// caller; zero means no deadline.
	queue    *nodeQueue
	began    time.Duration
	deadline time.Time
	// trip is shared by the queries of the batch that sent this query; nil before it is sent.
	trip atomic.Pointer[trip]

	err   error
	state atomic.Uint32
	done  chan struct{} // capacity 1
}

// States of a query. The goroutine that moves the state from waiting to answered or left decides the
// outcome.
const (
	waiting uint32 = iota
	answered
	left
)

// queries is a pool of queries. If the caller leaves before the answer, its query does not return to
// the pool.
type queries struct{ pool sync.Pool }

func (p *queries) get() *query {
	a, ok := p.pool.Get().(*query)
	if !ok {
		a = &query{done: make(chan struct{}, 1)}
	}
	return a
}

func (p *queries) put(a *query) {
	a.ops, a.plans, a.places, a.least = a.ops[:0], a.plans[:0], a.places[:0], a.least[:0]
	a.err, a.queue, a.deadline, a.weight = nil, nil, time.Time{}, 0
	a.trip.Store(nil)
	a.state.Store(waiting)
	p.pool.Put(a)
}

// add copies an Op without its key, because the key's memory belongs to the caller. place identifies
// the key. add refuses a second Op on the same state in a group.
func (a *query) add(op *headgate.Op, p *script.Plan, place script.Place) error {
	for i := len(a.ops) - 1; i >= 0 && a.ops[i].Group == op.Group; i-- {
		if a.places[i] == place {
			return script.ErrSameState
		}
	}
	a.ops = append(a.ops, *op)
	a.ops[len(a.ops)-1].Key = ""
	a.plans = append(a.plans, p)
	a.places = append(a.places, place)
	a.weight += p.Weight()
	return nil
}

// room sets the length of decisions to the number of Ops.
func (a *query) room() {
	if cap(a.decisions) < len(a.ops) {
		a.decisions = make([]headgate.Decision, len(a.ops))
	}
	a.decisions = a.decisions[:len(a.ops)]
}

// abandoned reports whether the caller has left.
func (a *query) abandoned() bool { return a.state.Load() == left }

// finish gives the answer to the caller, if it still waits, and counts that in counter unless it is nil. The query
// then belongs to the caller, which sees itself counted.
func (a *query) finish(err error, counter *atomic.Uint64) {
	a.err = err
	if !a.state.CompareAndSwap(waiting, answered) {
		return
	}
	if counter != nil {
		counter.Add(1)
	}
	a.done <- struct{}{}
}

// wait waits for the answer until ctx ends. mine reports whether the caller may reuse the query. If
// ctx ended first, the query belongs to its nodeQueue, and units that it takes stay used.
func (a *query) wait(ctx context.Context) (mine bool, err error) {
	select {
	case <-a.done:
		return true, a.err
	case <-ctx.Done():
	}
	if a.state.CompareAndSwap(waiting, left) {
		err := couldNot("decide", ctx.Err())
		if !errors.Is(err, context.Canceled) {
			a.queue.counts.undecided.Add(1)
		}
		if a.trip.Load() != nil && !errors.Is(err, context.Canceled) {
			a.queue.missed(a, a.queue.store.since(), err)
		}
		return false, err
	}
	<-a.done
	return true, a.err
}

// groupsOf calls visit for each group, up to the first error.
func (a *query) groupsOf(visit func(from, to int) error) error {
	for from := 0; from < len(a.ops); {
		to := endOfGroup(a.ops, from)
		if err := visit(from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// endOfGroup gives the index after the last Op of the group of ops[from].
func endOfGroup(ops []headgate.Op, from int) int {
	to := from + 1
	for to < len(ops) && ops[to].Group == ops[from].Group {
		to++
	}
	return to
}

// encode adds the query's groups to a script call.
func (a *query) encode(b *script.Batch) error {
	a.first = b.Len()
	return a.groupsOf(func(from, to int) error {
		least := int64(0)
		if len(a.least) > 0 {
			least = a.least[from]
		}
		return b.Add(a.ops[from:to], a.plans[from:to], a.places[from:to], least)
	})
}

// decode reads the answers to the query's groups. After an EdgeError, the groups without such an error are decided.
func (a *query) decode(s *Store, b *script.Batch) error {
	a.room()
	group, outside := a.first, error(nil)
	err := a.groupsOf(func(from, to int) error {
		err := b.Explain(group, a.ops[from:to], a.plans[from:to], a.places[from:to], a.decisions[from:to])
		group++
		if err != nil {
			err = fmt.Errorf("redis: %w", err)
			if !compensate.IsOutside(err) {
				return err
			}
			outside = err
			compensate.Undecide(a.decisions[from:to])
			return nil
		}
		for i := from; i < to; i++ {
			if r := &a.decisions[i].Receipt; r.Place != [2]uint64{} {
				r.Nonce, r.Policy = s.nonce(), a.ops[i].Policy
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return outside
}
