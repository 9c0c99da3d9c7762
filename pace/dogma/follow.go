package dogma

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/pace"
)

// follower is the state of one call of Follow.
type follower struct {
	source   *Source
	to       pace.Receiver
	known    int64  // the newest revision received; 0 before the first
	seen     []byte // the content of revision known
	assigned bool   // true after the first assigned plan
	// sure is true when a watch from known misses no change, and false after a failure:
	// a restored repository has other contents under old revision numbers.
	sure     bool
	failures int // since the last watch that was answered or lasted longWatch
}

// step sends one request, and returns the pause before the next one.
func (f *follower) step(ctx context.Context) time.Duration {
	err := f.readOrWatch(ctx)
	if err == nil {
		return watchPause
	}
	if ctx.Err() != nil {
		return 0 // The caller ended Follow, which is not a failure.
	}
	f.to.Fault(err)
	f.source.closeIdle()
	f.sure = false
	f.failures++
	return retryPause(f.failures, rand.Float64())
}

// readOrWatch reads the document or watches it. A successful read does not reset failures.
// Otherwise the pauses between reads would not grow while all watches fail.
func (f *follower) readOrWatch(ctx context.Context) error {
	if !f.sure {
		found, err := f.source.query(ctx, 0)
		if err != nil {
			return err
		}
		if found.revision < f.known {
			return fmt.Errorf("dogma: %s has revision %d, older than the known revision %d, which is kept: "+
				"commit the document again, or restart to apply the older one", f.source.name, found.revision, f.known)
		}
		f.sure = true
		f.apply(found)
		return nil
	}
	began := time.Now()
	found, err := f.source.query(ctx, f.known)
	if err != nil {
		if time.Since(began) >= longWatch {
			f.failures = 0
		}
		return err
	}
	if found.revision != 0 && found.revision <= f.known {
		return fmt.Errorf("dogma: a watch of %s after revision %d was answered with revision %d, which is ignored",
			f.source.name, f.known, found.revision)
	}
	f.failures = 0
	f.apply(found)
	return nil
}

// apply applies an answer. An invalid document is a fault but not a failure: the server
// answers, and a watch reports the corrected document.
func (f *follower) apply(found answer) {
	defer f.renew()
	if found.revision <= f.known {
		return
	}
	f.known = found.revision
	if bytes.Equal(found.content, f.seen) {
		return // Only other files of the repository changed.
	}
	f.seen = found.content
	plan, err := pace.ParseDocument(found.content, f.source.index)
	if err != nil {
		f.to.Fault(fmt.Errorf("dogma: revision %d of %s is ignored, because it is invalid: %w", found.revision, f.source.name, err))
		return
	}
	a := pace.Assignment{Plan: plan, Revision: found.revision}
	if f.assigned {
		a.Settled = time.Now().Add(f.source.settle)
	}
	f.assigned = true
	f.to.Assign(a)
}

// renew extends the plan's validity to HoldFor from now.
func (f *follower) renew() {
	if f.source.holdFor > 0 && f.assigned {
		f.to.ValidUntil(time.Now().Add(f.source.holdFor))
	}
}

const (
	watchPause = time.Second
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
	retrySpan  = 0.2 // a pause varies by this fraction, up and down
	longWatch  = 10 * time.Second
)

// retryPause returns the pause after a number of failures, at least 1. random is from 0 to 1.
func retryPause(failures int, random float64) time.Duration {
	pause := min(firstRetry<<min(failures-1, 10), lastRetry)
	return time.Duration(float64(pause) * (1 + retrySpan*(2*random-1)))
}

// pause sleeps for d, and reports whether ctx is still active.
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
