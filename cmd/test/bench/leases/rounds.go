package leases

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// digest is what server.callers has of a token.
func digest(token string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token))) }

// run is a run with two servers.
type run struct {
	size         Size
	ours, bare   *servers.Server
	leases, echo *load
	idle         uint64
}

// rounds waits until the holders have leases, and measures.
func (r *run) rounds(ctx context.Context, tell func(round int, f Figure)) error {
	r.leases.drift.Store(false)
	r.leases.active.Store(true)
	for began := time.Now(); r.leases.leased() < r.size.Streams*r.size.PerStream; {
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		if time.Since(began) > 2*r.size.Length+30*time.Second {
			return fmt.Errorf("leases: %d of %d holders have a lease", r.leases.leased(), r.size.Streams*r.size.PerStream)
		}
	}
	r.leases.active.Store(false)
	for round := range r.size.Rounds {
		for _, side := range []string{Echo, Steady, Drifting} {
			f, err := r.side(ctx, side)
			if err != nil {
				return err
			}
			tell(round, f)
		}
	}
	return nil
}

// side measures one side of a round.
func (r *run) side(ctx context.Context, side string) (f Figure, err error) {
	load, server := r.leases, r.ours
	if side == Echo {
		load, server = r.echo, r.bare
	}
	load.drift.Store(side == Drifting)
	load.active.Store(true)
	defer load.active.Store(false)
	if err := pause(ctx, r.size.Warm); err != nil {
		return f, err
	}
	load.reset()
	before, err := server.CPU()
	if err != nil {
		return f, err
	}
	own, err := servers.OwnCPU()
	if err != nil {
		return f, err
	}
	began := time.Now()
	if err := pause(ctx, r.size.Measure); err != nil {
		return f, err
	}
	after, err := server.CPU()
	if err != nil {
		return f, err
	}
	f = load.figure()
	ownAfter, err := servers.OwnCPU()
	if err != nil {
		return f, err
	}
	long := time.Since(began).Seconds()
	f.Side, f.Cores, f.Load = side, (after-before).Seconds()/long, (ownAfter-own).Seconds()/long
	memory, err := server.Resident()
	f.BytesPerHolder = (float64(memory) - float64(r.idle)) / float64(r.size.Streams*r.size.PerStream)
	return f, errors.Join(err, load.fault())
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
