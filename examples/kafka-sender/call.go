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

// RefusedError is the error of a call that the provider refused because there are too many, or
// because it is not well. It says nothing of the record, which is not charged a try. To
// slow down the other calls is the business of who knows the provider: see [Provider].
type RefusedError struct {
	Status int
	After  time.Duration // when to come again
}

// Error tells the status and when to come again.
func (e *RefusedError) Error() string {
	return "the provider refused with status " + strconv.Itoa(e.Status) + ": it may be called again in " + e.After.String()
}

const (
	restFirst = 100 * time.Millisecond // after the first try that failed; each further time twice that
	restMost  = 10 * time.Second
	// restUnpermitted is how long a record waits that got no permit, for what may pass.
	restUnpermitted = time.Second
)

// permitted begins a call. It is called by the pacer, and does not block.
func (s *Sender) permitted(calls context.Context, e *event, at headgate.Instant, err error) {
	s.mu.Lock()
	p := e.of
	if err != nil || p.state != owned {
		s.free++
		switch {
		case p.state == owned:
			s.rest(e, restUnpermitted)
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

// unpermitted says why there was no permit. Without a pacer there is nothing left to do.
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
		s.c.Logger.Warn("no permit: it is asked for again", "error", err)
	}
}

// call makes one call, and decides what comes next.
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

// failedTry has a record rest before the next try, or gives it up.
func (s *Sender) failedTry(ctx context.Context, e *event, err error) {
	e.tries++
	failed := func(c *Counts) { c.Failed++ }
	switch {
	case e.tries < s.c.Tries:
		s.later(e, failed, backoff(e.tries))
	case ctx.Err() != nil || s.isGone(e.of):
		s.later(e, failed, restMost) // Whoever has the partition next tries it anew.
	default:
		if lost := s.bury(ctx, e, err); lost != nil {
			s.c.Logger.Error("cannot write a dead letter: its record is tried again", "topic", s.c.DeadLetter, "error", lost)
			s.later(e, failed, restMost)
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

// backoff gives the rest after a number of failed tries, of which up to a half is
// chance: records that failed together do not come again together.
func backoff(tries int) time.Duration {
	rest := restMost
	if tries < 8 {
		rest = min(restFirst<<(tries-1), restMost)
	}
	return rest/2 + rand.N(rest/2)
}

// finish ends the last call of a record: it is done with, and with it may be those
// behind it.
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
	if p.state == owned {
		s.resume(p)
	}
}

// later ends a call of a record that is to be tried again after a rest.
func (s *Sender) later(e *event, count func(*Counts), rest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended(e, count)
	s.rest(e, rest)
}

// ended counts a call that is over, and has the next begin. It is called with the lock.
func (s *Sender) ended(e *event, count func(*Counts)) {
	s.free++
	count(&s.counts)
	if e.of.calls--; e.of.calls == 0 && e.of.idle != nil {
		close(e.of.idle)
	}
	s.signal()
}

// rest puts a record aside for a time. It is called with the lock.
func (s *Sender) rest(e *event, d time.Duration) {
	e.state = resting
	if e.of.state != owned {
		if e.of.state == leaving {
			s.counts.Dropped++
		}
		return
	}
	e.timer = time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.of.state == owned {
			e.state = queued
			s.again.push(e)
			s.signal()
		}
	})
}

// bury writes a record that nothing can be done with to the topic for such, with what
// is known of it, or to the log.
func (s *Sender) bury(ctx context.Context, e *event, why error) error {
	r := e.record
	if s.c.DeadLetter == "" {
		s.c.Logger.Error("a record is given up", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset,
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
