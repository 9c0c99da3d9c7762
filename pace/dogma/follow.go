package dogma

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/pace"
)

// follower is what is known to one who follows the document.
type follower struct {
	source *Source
	to     pace.Receiver
	known  int64  // the newest revision that the server has told of; 0 before the first
	seen   []byte // its content
	told   bool   // a plan has been told
	// sure says that a watch from the known revision on misses nothing. After a failure
	// it may: a repository that was set back has other contents under old numbers.
	sure     bool
	failures int // since the last watch that was answered, or was open for longWatch
}

// step asks once, and gives how long to pause then.
func (f *follower) step(ctx context.Context) time.Duration {
	err := f.ask(ctx)
	if err == nil {
		return watchPause
	}
	if ctx.Err() != nil {
		return 0 // It ended because it was told to.
	}
	f.to.Fault(err)
	f.source.closeIdle()
	f.sure = false
	f.failures++
	return retryPause(f.failures, rand.Float64())
}

// ask reads the document or watches it. Reading it forgives no failures: where watches
// never succeed, it is read as seldom as watches are tried.
func (f *follower) ask(ctx context.Context) error {
	if !f.sure {
		found, err := f.source.ask(ctx, 0)
		if err != nil {
			return err
		}
		if found.revision < f.known {
			return fmt.Errorf("dogma: %s has revision %d now, and had %d: the last plan is kept until there is a newer one; "+
				"commit the document anew, or restart to take an older one", f.source.name, found.revision, f.known)
		}
		f.sure = true
		f.take(found)
		return nil
	}
	began := time.Now()
	found, err := f.source.ask(ctx, f.known)
	if err != nil {
		if time.Since(began) >= longWatch {
			f.failures = 0
		}
		return err
	}
	if found.revision != 0 && found.revision <= f.known {
		return fmt.Errorf("dogma: a watch of %s after revision %d was answered with revision %d: the last plan is kept",
			f.source.name, f.known, found.revision)
	}
	f.failures = 0
	f.take(found)
	return nil
}

// take takes an answer over. A document that is not valid is a fault and no failure:
// the server is there, and a watch says when the document is mended.
func (f *follower) take(found answer) {
	defer f.renew()
	if found.revision <= f.known {
		return
	}
	f.known = found.revision
	if bytes.Equal(found.content, f.seen) {
		return // Other files of the repository have changed.
	}
	f.seen = found.content
	plan, err := pace.ParseDocument(found.content, f.source.index)
	if err != nil {
		f.to.Fault(fmt.Errorf("dogma: the last plan is kept, since revision %d of %s is not valid: %w", found.revision, f.source.name, err))
		return
	}
	a := pace.Assignment{Plan: plan, Revision: found.revision}
	if f.told {
		a.Settled = time.Now().Add(f.source.settle)
	}
	f.told = true
	f.to.Assign(a)
}

// renew counts HoldFor from now on.
func (f *follower) renew() {
	if f.source.holdFor > 0 && f.told {
		f.to.ValidUntil(time.Now().Add(f.source.holdFor))
	}
}

const (
	watchPause = time.Second
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
	retrySpan  = 0.2 // of a pause, more or less
	longWatch  = 10 * time.Second
)

// retryPause gives the pause after a number of failures, from 1. random is from 0 to 1.
func retryPause(failures int, random float64) time.Duration {
	pause := min(firstRetry<<min(failures-1, 10), lastRetry)
	return time.Duration(float64(pause) * (1 + retrySpan*(2*random-1)))
}

// pause waits, and says whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
