package shared

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// take takes one unit under a key. Calls of one caller are sequential.
type take func(ctx context.Context, key string) (allowed bool, err error)

// limiter decides with state that is kept in servers.
type limiter interface {
	// Caller returns the function for one caller. The function has its own memory, which a
	// program would also reuse between requests.
	Caller() take
	Close()
}

// maker creates a side.
type maker struct {
	Name string
	Kind contest.Kind
	// MayFail has the meaning of contest.Side.MayFail.
	MayFail bool
	New     func(ctx context.Context, addrs []string, l limiters.Limit) (limiter, error)
}

// starter starts the servers of one side.
type starter func(context.Context, *place) ([]*servers.Server, error)

// entrant is a side that is ready to run.
type entrant struct {
	maker

	limiter limiter
	meters  []contest.Meter
}

// enter starts the servers of a side, checks its limits, and creates its limiter.
func (p *place) enter(ctx context.Context, m maker, start starter, l limiters.Limit) (*entrant, error) {
	own, err := start(ctx, p)
	p.started = append(p.started, own...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	var addrs []string
	for _, s := range own {
		addrs = append(addrs, s.Addr)
	}
	if m.Kind != contest.Floor {
		if err := limits(ctx, m, addrs); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	made, err := m.New(ctx, addrs, l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	p.opened = append(p.opened, made)
	return &entrant{m, made, []contest.Meter{{Name: clientCPU, Read: servers.OwnCPU}, {Name: serverCPU, Read: servers.CPUOf(own)}}}, nil
}

// The check of a limiter before it takes part. It sends checkRequests under one key, with a
// limit of checkAllowance per checkPer.
const (
	checkRequests  = 200
	checkAllowance = 100
	checkPer       = time.Minute
	// checkHeld is the number of units that a correct limiter may fail to allow. A bucket
	// that grants units in advance lends fewer units at once.
	checkHeld = 5
)

// limits checks that a limiter really limits. A limiter that allows all requests would be
// too fast.
func limits(ctx context.Context, m maker, addrs []string) error {
	made, err := m.New(ctx, addrs, limiters.Limit{Count: checkAllowance, Per: checkPer, Burst: checkAllowance})
	if err != nil {
		return err
	}
	defer made.Close()
	decide, allowed, began := made.Caller(), 0, time.Now()
	for range checkRequests {
		ok, err := decide(ctx, "the-one-key")
		if err != nil {
			return err
		}
		if ok {
			allowed++
		}
	}
	given := int(time.Since(began)*checkAllowance/checkPer) + 1
	if allowed < checkAllowance-checkHeld || allowed > checkAllowance+given {
		return fmt.Errorf("the side does not limit: it allowed %d of %d requests under one key, want about %d and at most %d more",
			allowed, checkRequests, checkAllowance, given)
	}
	return nil
}
