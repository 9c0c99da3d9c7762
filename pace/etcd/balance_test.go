//go:build !race

package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// unbalanced is a limit of 500/s. One instance has a demand of 1,000/s, and the other instances
// have small demands.
type unbalanced struct {
	name    string
	small   int
	asks    float64 // calls per second of each small instance
	poisson bool
	used    float64 // the least part of the limit that must be used
	seed    uint64
}

const (
	unbalancedLimit   = 500
	unbalancedWarm    = 90 * time.Second
	unbalancedCounted = 200 * time.Second
	unbalancedWait    = 2 * time.Second // 99 % of the small instances' permits wait at most this long
)

// relay is a pace.Source controlled by its test.
type relay struct {
	id      string
	to      chan pace.Receiver
	pacer   *pace.Pacer
	told    pace.Receiver
	reports estimate
	shown   int64
	next    time.Time
}

func (r *relay) Follow(ctx context.Context, to pace.Receiver) error {
	r.to <- to
	<-ctx.Done()
	return nil
}

// crowd is a set of real pacers in virtual time, with the plans that follow from their reports.
type crowd struct {
	t      *testing.T
	random *rand.Rand
	all    []*relay
	ids    []string
	plan   *plan
	number int64
	from   time.Time // the start of the measurement
	used   int64
	waits  []time.Duration // waits of the small instances' permits
}

func (u unbalanced) start(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{t: t, random: rand.New(rand.NewPCG(15, u.seed))}
	for i := range u.small + 1 {
		r := &relay{id: fmt.Sprintf("i%03d", i), to: make(chan pace.Receiver, 1)}
		p, err := pace.New(pace.Config{Provider: provider, Source: r, Smoothing: pace.EvenSpread, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		r.pacer, r.told = p, <-r.to
		c.all, c.ids = append(c.all, r), append(c.ids, r.id)
		t.Cleanup(p.Close)
	}
	return c
}

func (c *crowd) demand(id string) int64 { return c.all[slices.Index(c.ids, id)].shown }

// report sends the due reports of all instances.
func (c *crowd) report(now time.Time) {
	for _, r := range c.all {
		if !now.Before(r.next) {
			r.shown = r.reports.next(r.told.Demand())
			r.next = now.Add(time.Second + time.Duration(c.random.Int64N(int64(time.Second))))
		}
	}
}

// propose proposes a plan if the reports require one.
func (c *crowd) propose(now time.Time) {
	units := divide(unbalancedLimit, c.ids, c.demand)
	if c.plan != nil && !material(c.plan, units, c.demand) {
		return
	}
	c.number++
	c.plan = &plan{limit: unbalancedLimit, per: time.Second, members: c.ids, units: units}
	from := edge(headgate.Instant(now.UnixNano()).Add(defaultPropagation), time.Second)
	for i, r := range c.all {
		part, err := c.plan.part(i)
		if err != nil {
			c.t.Fatal(err)
		}
		r.told.Assign(pace.Assignment{Plan: part, From: from, Settled: now, Revision: c.number})
	}
}

// ask requests a permit for one instance.
func (c *crowd) ask(i int, counts bool) {
	now, most := time.Now(), pace.Forever
	if i == 0 {
		most = time.Second
	}
	c.all[i].pacer.AcquireFunc(1, most, func(at headgate.Instant, err error) {
		if err != nil {
			return
		}
		if at.Time().After(c.from) {
			c.used++
		}
		if i > 0 && counts {
			c.waits = append(c.waits, time.Since(now))
		}
	})
}

// stream has the calls of one instance.
type stream struct {
	next time.Time
	rate float64 // calls per second
}

// streams returns the calls of all instances after a start.
func (u unbalanced) streams(c *crowd, start time.Time) []stream {
	all := make([]stream, len(c.all))
	for i := range all {
		all[i] = stream{start.Add(time.Duration(c.random.Int64N(int64(time.Second)))), u.asks}
	}
	all[0].rate = 2 * unbalancedLimit
	return all
}

// play runs the calls of all instances until the end of the measurement.
func (u unbalanced) play(c *crowd) {
	const tick = 10 * time.Millisecond
	start := time.Now()
	c.from = start.Add(unbalancedWarm)
	all, rebalance := u.streams(c, start), start
	for now := start; now.Sub(c.from) < unbalancedCounted; now = time.Now() {
		c.report(now)
		if !now.Before(rebalance) {
			rebalance = now.Add(defaultRebalance)
			c.propose(now)
		}
		for i := range all {
			for s := &all[i]; !s.next.After(now); {
				c.ask(i, now.After(c.from))
				step := 1.0
				if u.poisson {
					step = c.random.ExpFloat64()
				}
				s.next = s.next.Add(time.Duration(step / s.rate * float64(time.Second)))
			}
		}
		time.Sleep(tick) //nolint:forbidigo // in a bubble: it takes no time
	}
}

// holds plays one case. It fails when too little of the limit is used, or when the small
// instances wait too long.
func (u unbalanced) holds(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := u.start(t)
		u.play(c)
		used := float64(c.used) / (unbalancedLimit * unbalancedCounted.Seconds())
		slices.Sort(c.waits)
		late := c.waits[len(c.waits)*99/100]
		t.Logf("%s, seed %d: %.2f %% used, 99 %% of %d permits of the small ones wait %v at most, %d plans",
			u.name, u.seed, 100*used, len(c.waits), late.Round(10*time.Millisecond), c.number)
		if used < u.used || late > unbalancedWait {
			t.Errorf("%.4f used, want %.2f; 99 %% wait %v at most, want %v", used, u.used, late, unbalancedWait)
		}
	})
}

// cases returns two cases, each with regular and with irregular (Poisson) calls.
func cases(seed uint64) []unbalanced {
	return []unbalanced{
		{"19 ask for 5, constant", 19, 5, false, 0.99, seed},
		{"95 ask for 2, constant", 95, 2, false, 0.99, seed},
		{"19 ask for 5, Poisson", 19, 5, true, 0.93, seed},
		{"95 ask for 2, Poisson", 95, 2, true, 0.80, seed},
	}
}

// TestUnbalanced: with balance "demand", one instance has a demand above the whole limit. It
// gets the units that the small instances leave, and the small instances do not wait for it.
func TestUnbalanced(t *testing.T) {
	for _, u := range cases(15) {
		t.Run(u.name, u.holds)
	}
}
