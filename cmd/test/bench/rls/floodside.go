package rls

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/openloop"
)

// floodSide is a side of the scene: the others call while its flood runs.
type floodSide struct {
	row     contest.Row
	flooder *flooder
	check   func(*flooded) error
	// refused is the smallest share of the flood that was refused, and slowest the smallest rate of its answers.
	refused, slowest float64
	// delay is the largest p99 of the time from the due time of a measured call to its begin.
	delay time.Duration
}

// measure is one turn: the flood begins, and the others call while it runs.
func (s *floodSide) measure(ctx context.Context, c *callers, during time.Duration, counts bool) error {
	if err := s.flooder.begin(int((floodLead + during + floodTail).Seconds() * floodRate)); err != nil {
		return err
	}
	<-time.After(floodLead)
	took, delays, failed := c.others(ctx, during)
	of, err := s.flooder.end()
	if err == nil {
		err = s.check(&of)
	}
	if err = errors.Join(failed, err); err != nil || !counts {
		return err
	}
	refused, rate, delay := float64(of.Refused)/float64(of.Calls), of.rate(), percentile99(delays)
	if len(s.row.Rounds) > 0 {
		refused, rate, delay = min(refused, s.refused), min(rate, s.slowest), max(delay, s.delay)
	}
	s.refused, s.slowest, s.delay = refused, rate, delay
	s.row.Rounds = append(s.row.Rounds, float64(percentile99(took)))
	return nil
}

// others makes the calls of the other callers, and gives the times from the due times to the answers and to the begins. All
// calls must be allowed.
func (c *callers) others(ctx context.Context, during time.Duration) (took, delays []time.Duration, err error) {
	n := int(during.Seconds() * othersRate)
	took, delays = make([]time.Duration, n), make([]time.Duration, n)
	var failed atomic.Int64
	var failure atomic.Pointer[error]
	ctx, cancel := context.WithTimeout(ctx, during+floodGrace)
	defer cancel()
	var calls sync.WaitGroup
	err = openloop.Each(ctx, n, time.Second/othersRate, func(i int, due time.Time) error {
		delays[i] = time.Since(due)
		calls.Go(func() {
			of := c.clients[i%len(c.clients)]
			response, err := of.ShouldRateLimit(authorized(ctx, 1+i%others), c.requests[i%len(c.requests)])
			took[i] = time.Since(due)
			if tally(response, err).Allowed != 1 {
				wrong := fmt.Errorf("got %v, %w", response, err)
				failed.Add(1)
				failure.Store(&wrong)
			}
		})
		return nil
	})
	calls.Wait()
	if one := failure.Load(); one != nil {
		err = errors.Join(err, fmt.Errorf("rls: %d of %d calls of callers within their limits failed: %w", failed.Load(), n, *one))
	}
	return took, delays, err
}

// limited checks that the flood passed server.limits.caller only as far as the limit allows it. A delayed flood is also
// checked: the limit allows as many calls as belong to the time that the flood took.
func (f *flooded) limited() error {
	most := floodLimit + int(floodLimit*f.Took/time.Second)
	if f.Allowed == 0 || f.Allowed > most || f.Allowed+f.Refused != f.Calls {
		return fmt.Errorf("rls: %d calls of the flood were allowed and %d refused, of %d in %v: want at least one and at most %d allowed, "+
			"and the others refused", f.Allowed, f.Refused, f.Calls, f.Took, most)
	}
	return nil
}

// unlimited checks that the flood was answered, and not limited.
func (f *flooded) unlimited() error {
	if f.Allowed != f.Calls {
		return fmt.Errorf("rls: the bare server allowed %d of %d calls of the flood: want all", f.Allowed, f.Calls)
	}
	return nil
}
