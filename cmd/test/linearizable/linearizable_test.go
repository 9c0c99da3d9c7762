// Package linearizable_test checks histories of concurrent calls to Redis.
package linearizable_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// counted is a call to the store in a history, with its answer.
type counted struct {
	cost int64
	look bool
	back bool // the call returns cost units
}

type answered struct {
	allowed   bool
	remaining int64
}

// counter is a model of a window that does not end: it counts up to its limit, and takes units
// back.
func counter(limit int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			used, _ := state.(int64)
			in, _ := input.(counted)
			out, _ := output.(answered)
			if in.back {
				return true, used - in.cost
			}
			passes := used+in.cost <= limit
			after := used
			if passes {
				after += in.cost
			}
			if out.allowed != passes || out.remaining != limit-after {
				return false, state
			}
			if in.look {
				return true, used
			}
			return true, after
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// TestLinearizable: concurrent calls of several stores have the same effect as some sequence of
// calls. Each call takes effect between its start and its answer.
func TestLinearizable(t *testing.T) {
	server := testserver.Start(t)
	const limit, clients, steps = 40, 6, 25
	for _, a := range []headgate.Algorithm{headgate.FixedWindow, headgate.SlidingLog, headgate.SlidingWindow} {
		for round := range 4 {
			policy := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: limit, Per: 100 * 24 * time.Hour}}
			if a == headgate.SlidingWindow {
				policy.SubWindows = 2
			}
			h := &history{began: time.Now()}
			var all sync.WaitGroup
			for c := range clients {
				store, err := redis.Open(redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(store.Close)
				id, err := store.Prepare(policy)
				if err != nil {
					t.Fatal(err)
				}
				all.Go(func() { h.play(t, store, id, c, steps, fmt.Sprint(a, round)) })
			}
			all.Wait()
			if porcupine.CheckOperationsTimeout(counter(limit), h.all, time.Minute) != porcupine.Ok {
				t.Fatalf("%s, round %d: no order of the %d operations explains the answers", a, round, len(h.all))
			}
		}
	}
}

// TestModelCatches: the model refuses a history that allows one unit twice.
func TestModelCatches(t *testing.T) {
	twice := []porcupine.Operation{
		{ClientId: 0, Input: counted{cost: 1}, Call: 0, Output: answered{true, 0}, Return: 10},
		{ClientId: 1, Input: counted{cost: 1}, Call: 5, Output: answered{true, 0}, Return: 15},
	}
	if porcupine.CheckOperations(counter(1), twice) {
		t.Error("the model accepts a history in which one unit was taken twice")
	}
}

// history records calls and answers by one monotonic clock.
type history struct {
	began time.Time
	mu    sync.Mutex
	all   []porcupine.Operation
}

func (h *history) play(t *testing.T, store headgate.Store, id headgate.PolicyID, client, steps int, key string) {
	t.Helper()
	var taken []headgate.Receipt
	for step := range steps {
		in, out := counted{cost: int64(step % 3), look: step%7 == 3}, answered{}
		op := headgate.Op{Key: key, Policy: id, Cost: in.cost}
		if in.look {
			op.Kind = headgate.Peek
		}
		call := time.Since(h.began)
		if step%5 == 4 && len(taken) > 0 {
			in = counted{cost: taken[0].Cost, back: true}
			if err := store.Return(t.Context(), taken[:1]); err != nil {
				t.Error(err)
				return
			}
			taken = taken[1:]
		} else {
			var ds [1]headgate.Decision
			if err := store.Apply(t.Context(), []headgate.Op{op}, ds[:]); err != nil {
				t.Error(err)
				return
			}
			out = answered{ds[0].Verdict == headgate.Allow, ds[0].Remaining}
			if r := ds[0].Receipt; !r.Empty() && r.Cost > 0 {
				taken = append(taken, r)
			}
		}
		h.mu.Lock()
		h.all = append(h.all, porcupine.Operation{
			ClientId: client, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(h.began)),
		})
		h.mu.Unlock()
	}
}
