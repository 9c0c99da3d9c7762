package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/internal/config/source"
)

// minPause and maxPause bound the pause before the next attempt. Each pause is random between half and all of it.
// A source is back within 2 s after its server: maxPause and reconnectPause together are below that.
const minPause, maxPause = 50 * time.Millisecond, 750 * time.Millisecond

// follower is one run of Follow. It belongs to one goroutine.
type follower struct {
	*Source

	to       source.Receiver
	read     bool    // The receiver has all objects up to history.
	history  history // What the receiver has.
	contents contents
	page     int  // The keys of the next page.
	answered bool // The current session has reached the newest revision.
	listed   bool // The current session has read all objects.
	foreign  foreignKeys
	warned   time.Time // The last line about foreign keys.
}

// run follows until ctx ends.
func (f *follower) run(ctx context.Context) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		f.answered, f.listed = false, false
		err := f.session(ctx)
		if ctx.Err() != nil {
			return
		}
		compacted := errors.Is(err, errCompacted)
		if f.answered || compacted && !f.listed { // etcd answers. One read of everything is enough, unless it is compacted again.
			pause = minPause
		}
		if !compacted {
			f.to.Failed(err)
		}
		if errors.Is(err, errCompacted) || errors.Is(err, errHistory) {
			f.read = false
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return
		}
	}
}

// session reads all objects if the receiver does not have them, and watches until something fails.
func (f *follower) session(ctx context.Context) error {
	client, err := f.connection.get(ctx)
	if err != nil {
		return f.explain(err)
	}
	if !f.read {
		at := time.Now()
		all, err := f.list(ctx, client)
		if err != nil {
			f.failed(client, err)
			return f.explain(err)
		}
		f.takeAll(all, at)
		f.listed = true
	}
	err = f.watch(ctx, client)
	f.failed(client, err)
	return f.explain(err)
}

// failed leaves a member that cannot serve. A read that has timed out is its silence: the follower sets the times.
func (f *follower) failed(client *clientv3.Client, err error) {
	if errors.Is(err, context.DeadlineExceeded) || codeOf(err) == codes.DeadlineExceeded {
		err = errSilent
	}
	f.connection.failed(client, err)
}

// takeAll gives the receiver all objects.
func (f *follower) takeAll(all *listing, at time.Time) {
	f.foreign = all.foreign
	f.foreign.log(f.config.Logger, &f.warned)
	f.contents.set(all.objects)
	f.read, f.history = true, all.history
	f.to.Changed(source.Change{All: true, Objects: all.objects, Revision: f.contents.text(), Position: f.history.revision})
	f.to.Reached(at)
}

// explain adds the place to an error.
func (f *follower) explain(err error) error {
	if errors.Is(err, errCompacted) || errors.Is(err, errHistory) {
		return err
	}
	return fmt.Errorf("config/source/etcd: %s: %w%s", f.config, err, f.connection.advice(err))
}
