package shared

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
	"github.com/headgate/headgate/test/bench/servers"
)

// take asks for one unit under a key. Of one caller, calls follow each other.
type take func(ctx context.Context, key string) (allowed bool, err error)

// limiter decides in servers.
type limiter interface {
	// Caller gives what one caller asks with: it has memory of its own, as a program
	// keeps it between requests.
	Caller() take
	Close()
}

// maker makes one of the sides.
type maker struct {
	Name string
	Kind contest.Kind
	// MayFail is that of contest.Side.
	MayFail bool
	New     func(ctx context.Context, addrs []string, l limiters.Limit) (limiter, error)
}

// starter starts the servers of one side.
type starter func(context.Context, *place) ([]*servers.Server, error)

// entrant is a side that is ready.
type entrant struct {
	maker

	limiter limiter
	meters  []contest.Meter
}

// enter starts servers for a side, sees that it limits, and makes it ready.
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

// What a limiter is asked before it takes part: so many requests under one key, of
// which it admits allowance, and what it gives back meanwhile.
const (
	checkRequests  = 200
	checkAllowance = 100
	checkPer       = time.Minute
	// checkHeld is what may be lacking: a bucket that units are taken ahead from lends less at once.
	checkHeld = 5
)

// limits sees that a limiter limits: who admits everything is fast.
func limits(ctx context.Context, m maker, addrs []string) error {
	made, err := m.New(ctx, addrs, limiters.Limit{Count: checkAllowance, Per: checkPer, Burst: checkAllowance})
	if err != nil {
		return err
	}
	defer made.Close()
	ask, allowed, began := made.Caller(), 0, time.Now()
	for range checkRequests {
		ok, err := ask(ctx, "the-one-key")
		if err != nil {
			return err
		}
		if ok {
			allowed++
		}
	}
	given := int(time.Since(began)*checkAllowance/checkPer) + 1
	if allowed < checkAllowance-checkHeld || allowed > checkAllowance+given {
		return fmt.Errorf("it admits %d of %d requests under one key, want %d and at most %d more: it does not limit as the others do",
			allowed, checkRequests, checkAllowance, given)
	}
	return nil
}
