package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// RefusedError is the error of a call that the provider refused because of overload. The
// refusal says nothing about the record, so it does not count as a try. The Call function
// must slow down other calls: see [Provider].
type RefusedError struct {
	Status int
	After  time.Duration // time until the next try
}

// Error returns the status and the time until the next try.
func (e *RefusedError) Error() string {
	return "the provider refused with status " + strconv.Itoa(e.Status) + ": retry after " + e.After.String()
}

const (
	backoffFirst = 100 * time.Millisecond // after the first failed try; each further failure doubles it
	backoffMax   = 10 * time.Second
	// backoffNoPermit is the delay of a record without a permit, because the cause may pass.
	backoffNoPermit = time.Second
)

// permitted starts a call. The pacer calls permitted, which must not block.
func (s *Sender) permitted(calls context.Context, e *event, at headgate.Instant, err error) {
	s.mu.Lock()
	p := e.of
	if err != nil || p.state != active {
		s.free++
		switch {
		case p.state == active:
			s.postpone(e, backoffNoPermit)
		case err == nil:
			s.counts.Unused++
		}
		s.mu.Unlock()
		s.unpermitted(err)
		return
	}
	e.state = calling
	p.calls++
	s.calls.Add(1)
	s.mu.Unlock()
	go s.call(calls, e, at)
}

// unpermitted logs why a permit is missing. If the pacer has ended, the sender ends too.
func (s *Sender) unpermitted(err error) {
	s.signal()
	switch {
	case err == nil:
	case errors.Is(err, pace.ErrClosed):
		select {
		case s.failed <- err:
		default:
		}
	default:
		s.c.Logger.Warn("no permit: the sender will request it again", "error", err)
	}
}

// call makes one call and handles its result.
func (s *Sender) call(ctx context.Context, e *event, at headgate.Instant) {
	defer s.calls.Done()
	within, cancel := context.WithTimeout(ctx, s.c.CallTimeout)
	err := s.c.Call(within, e.record, at)
	cancel()
	refused, told := errors.AsType[*RefusedError](err)
	switch {
	case err == nil:
		s.finish(e, func(c *Counts) { c.Sent++ })
	case told:
		s.later(e, func(c *Counts) { c.Refused++ }, refused.After)
	default:
		s.failedTry(ctx, e, err)
	}
}

// failedTry delays a record until its next try, or gives the record up.
func (s *Sender) failedTry(ctx context.Context, e *event, err error) {
	e.tries++
	failed := func(c *Counts) { c.Failed++ }
	switch {
	case e.tries < s.c.Tries:
		s.later(e, failed, retryDelay(e.tries))
	case ctx.Err() != nil || s.isGone(e.of):
		s.later(e, failed, backoffMax) // The next owner of the partition starts again with the first try.
	default:
		if lost := s.giveUpRecord(ctx, e, err); lost != nil {
			s.c.Logger.Error("cannot write a dead letter: the record will be retried", "topic", s.c.DeadLetter, "error", lost)
			s.later(e, failed, backoffMax)
			return
		}
		s.finish(e, func(c *Counts) { c.Failed++; c.Dead++ })
	}
}

func (s *Sender) isGone(p *partition) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.state == gone
}

// retryDelay returns the delay after a number of failed tries. Up to half of the delay is
// random, so that records that failed together do not retry together.
func retryDelay(tries int) time.Duration {
	delay := backoffMax
	if tries < 8 {
		delay = min(backoffFirst<<(tries-1), backoffMax)
	}
	return delay/2 + rand.N(delay/2)
}

// finish ends the last call of a record. finish then commits the record, unless an earlier
// record of the partition is not done.
func (s *Sender) finish(e *event, count func(*Counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended(e, count)
	p := e.of
	if p.state == gone {
		return
	}
	e.state = done
	if last := p.finished(); last != nil {
		s.client.MarkCommitRecords(last)
	}
	if p.state == active {
		s.resume(p)
	}
}

// later ends a call of a record that will be retried after a delay.
func (s *Sender) later(e *event, count func(*Counts), delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended(e, count)
	s.postpone(e, delay)
}

// ended counts a finished call and lets the next call start. The caller holds mu.
func (s *Sender) ended(e *event, count func(*Counts)) {
	s.free++
	count(&s.counts)
	if e.of.calls--; e.of.calls == 0 && e.of.idle != nil {
		close(e.of.idle)
	}
	s.signal()
}

// postpone delays the next try of a record. The caller holds mu.
func (s *Sender) postpone(e *event, d time.Duration) {
	e.state = delayed
	if e.of.state != active {
		if e.of.state == leaving {
			s.counts.Dropped++
		}
		return
	}
	e.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.of.state == active {
			e.state = queued
			s.again.push(e)
			s.signal()
		}
	})
}

// giveUpRecord writes a failed record to the dead-letter topic, with its origin and error.
// Without such a topic it writes to the log.
func (s *Sender) giveUpRecord(ctx context.Context, e *event, why error) error {
	r := e.record
	if s.c.DeadLetter == "" {
		s.c.Logger.Error("gave up a record after its last try", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset,
			"tries", e.tries, "error", why)
		return nil
	}
	from := r.Topic + "/" + strconv.Itoa(int(r.Partition)) + "/" + strconv.FormatInt(r.Offset, 10)
	letter := &kgo.Record{Topic: s.c.DeadLetter, Key: r.Key, Value: r.Value}
	letter.Headers = append(append(letter.Headers, r.Headers...),
		kgo.RecordHeader{Key: "dead-letter-from", Value: []byte(from)},
		kgo.RecordHeader{Key: "dead-letter-error", Value: fmt.Appendf(nil, "%.500s", why)},
		kgo.RecordHeader{Key: "dead-letter-tries", Value: []byte(strconv.Itoa(e.tries))},
	)
	return s.client.ProduceSync(ctx, letter).FirstErr()
}
