package meter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/meter/journal"
)

// Output takes records out of the journal, at least once. Deliver is called from one goroutine at a time.
type Output interface {
	// Name names the output in statistics and logs, and its cursor in the journal. It is a word of letters.
	Name() string
	// Deliver delivers records in their order. delivered is the number of the first ones that were delivered for good; the
	// others come again, also after an error. An error may be a *RetryError.
	Deliver(ctx context.Context, records []journal.Record) (delivered int, err error)
	// Close releases what the output has open, after the last Deliver.
	Close() error
}

// RetryError is the error of a Deliver that says when to try again.
type RetryError struct {
	Err   error
	After time.Duration
}

// Error gives the text of Err.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap gives Err.
func (e *RetryError) Unwrap() error { return e.Err }

const (
	// batchRecords is the number of records that an output gets at once. It bounds the memory of an output, whatever the
	// backlog.
	batchRecords = 2000
	// firstBackoff is short, because an endpoint that fails now and then answers the next request. Each failure without a
	// delivery doubles the backoff, up to mostBackoff.
	firstBackoff = 100 * time.Millisecond
	mostBackoff  = time.Minute
	// endingBackoff bounds the backoff at the end of the meter.
	endingBackoff = time.Second
	// mostRetryAfter bounds the time for which an endpoint can stop deliveries.
	mostRetryAfter = 10 * time.Minute
	// logEvery bounds the lines about an output that fails.
	logEvery = time.Minute
)

// delivery runs one output.
type delivery struct {
	out    Output
	reader *journal.Reader
	log    *slog.Logger
	every  time.Duration
	ending <-chan struct{}

	mu       sync.Mutex
	failures uint64
	last     string // the last error; "" after a delivery
	failing  time.Time
	logged   time.Time

	refused       uint64 // the set-aside and dropped records that were logged
	refusedLogged time.Time
	unsavedLogged time.Time
}

// starter is an Output with something to do before the first Deliver, when no other process has the journal in a folder.
type starter interface{ start(journal string) error }

// start starts the outputs that need it.
func start(outputs []Output, journal string) error {
	for _, out := range outputs {
		if s, ok := out.(starter); ok {
			if err := s.start(journal); err != nil {
				return fmt.Errorf("meter: output %s: %w", out.Name(), err)
			}
		}
	}
	return nil
}

// ticker is an Output with something to do although there are no records.
type ticker interface{ tick(now time.Time) error }

// run delivers until ending is closed and no records are left, or ctx ends.
func (d *delivery) run(ctx context.Context) {
	wait := rand.N(d.every) // Instances that started together deliver at different times.
	for {
		ended := d.pause(ctx, wait)
		left := d.deliverAll(ctx)
		if timed, ok := d.out.(ticker); ok && !left {
			if err := timed.tick(time.Now()); err != nil {
				d.failed(err, firstBackoff)
			}
		}
		if ctx.Err() != nil || ended && !left {
			return
		}
		wait = d.every*3/4 + rand.N(d.every/2)
	}
}

// pause waits for a time, or until the end. It reports whether the meter ends.
func (d *delivery) pause(ctx context.Context, wait time.Duration) (ended bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-d.ending:
		return true
	case <-ctx.Done():
		return true
	}
}

// deliverAll delivers until no record is left. It reports whether records are left, because ctx has ended.
func (d *delivery) deliverAll(ctx context.Context) (left bool) {
	backoff := firstBackoff
	for ctx.Err() == nil {
		n, more, err := d.deliver(ctx)
		switch {
		case err != nil:
			if n > 0 {
				backoff = firstBackoff
			}
			d.backOff(ctx, d.failed(err, backoff))
			backoff = min(2*backoff, mostBackoff)
		case !more:
			return false
		default:
			backoff = firstBackoff
		}
	}
	return true
}

// backOff waits after a failure. At the end of the meter, it tries again soon.
func (d *delivery) backOff(ctx context.Context, wait time.Duration) {
	select {
	case <-d.ending:
		wait = min(wait, endingBackoff)
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-d.endingOnce():
	}
}

// endingOnce gives the channel of the end, or nil if it is closed already.
func (d *delivery) endingOnce() <-chan struct{} {
	select {
	case <-d.ending:
		return nil
	default:
		return d.ending
	}
}

// deliver delivers one batch. It reports whether there may be more.
func (d *delivery) deliver(ctx context.Context) (n int, more bool, err error) {
	records, err := d.reader.Read(batchRecords)
	if err != nil || len(records) == 0 {
		return 0, false, err
	}
	n, err = d.out.Deliver(ctx, records)
	if n > 0 {
		if saved := d.reader.Ack(n); saved != nil {
			d.unsaved(saved, time.Now())
		}
	}
	d.logRefused(time.Now())
	if err == nil {
		d.succeeded()
		err = shortOf(n, len(records))
	}
	return n, true, err
}

// unsaved logs, at most once in logEvery, that the place of the output was not saved.
func (d *delivery) unsaved(err error, now time.Time) {
	if now.Sub(d.unsavedLogged) < logEvery {
		return
	}
	d.unsavedLogged = now
	d.log.Error("the place of an output cannot be saved: after a restart, it delivers records again", "output", d.out.Name(), "error", err)
}

// logRefused logs, at most once in logEvery, that the endpoint refuses records although it accepts others.
func (d *delivery) logRefused(now time.Time) {
	a, ok := d.out.(asider)
	if !ok {
		return
	}
	kept, dropped := a.SetAside(), a.droppedRefused()
	if kept+dropped == d.refused || now.Sub(d.refusedLogged) < logEvery {
		return
	}
	d.refused, d.refusedLogged = kept+dropped, now
	d.log.Error("the endpoint refuses some records of metering: they are set aside, and dropped while that file is full",
		"output", d.out.Name(), "set_aside", kept, "dropped", dropped)
}

// errShort says that an Output has delivered nothing and gave no error.
var errShort = errors.New("meter: an output has delivered nothing and gave no error")

func shortOf(n, total int) error {
	if n <= 0 && total > 0 {
		return errShort
	}
	return nil
}

// failed counts and logs a failure, and gives the time until the next attempt.
func (d *delivery) failed(err error, backoff time.Duration) time.Duration {
	wait := backoff/2 + rand.N(backoff)
	var retry *RetryError
	if errors.As(err, &retry) && retry.After > 0 {
		wait = min(retry.After, mostRetryAfter)
		wait += rand.N(wait/8 + 1)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.failures++
	if d.last == "" {
		d.failing = now
	}
	d.last = err.Error()
	if now.Sub(d.logged) >= logEvery || d.logged.IsZero() {
		d.logged = now
		d.log.Error("records of metering are not delivered: they wait in the journal, and the attempt is repeated",
			"output", d.out.Name(), "error", err, "again_in", wait.Round(time.Millisecond).String(),
			"failing_for", now.Sub(d.failing).Round(time.Second).String())
	}
	return wait
}

func (d *delivery) succeeded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != "" {
		d.log.Info("records of metering are delivered again", "output", d.out.Name(),
			"failing_for", time.Since(d.failing).Round(time.Second).String())
	}
	d.last, d.logged = "", time.Time{}
}
