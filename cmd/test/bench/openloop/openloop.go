// Package openloop makes calls at a constant rate, also while answers are slow. Load sends HTTP
// requests, and Each begins calls of any kind. The latency of a call is measured from the time at
// which the call was due, so that a delayed call counts with its delay.
package openloop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Load is a set of open connections to one server. One goroutine at a time may use a Load.
type Load struct {
	target      Target
	connections []connection
	// sent is the number of requests of each connection before the current Send.
	sent []int
}

// connection sends requests, and reads their answers.
type connection interface {
	// send sends the next request.
	send() error
	// answer reads until an answer has ended, and returns the number of its request. The first request of a
	// connection has the number 0. It returns an error for another status than that of the target.
	answer() (int, error)
	Close() error
}

// Times has the times of requests, in the order of their due times.
type Times struct {
	// Latency is the time from the due time to the end of the answer.
	Latency []time.Duration
	// Delay is the time from the due time to the send. It is part of Latency.
	Delay []time.Duration
}

const (
	// lead is the time before the first request, in which the readers start.
	lead = time.Millisecond
	// grace limits the time for the last answers.
	grace = 10 * time.Second
)

// Dial opens the connections of a load.
func Dial(ctx context.Context, t Target) (*Load, error) {
	l := &Load{target: t, sent: make([]int, t.Connections)}
	for range t.Connections {
		c, err := t.connect(ctx)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("openloop: %w", err)
		}
		l.connections = append(l.connections, c)
	}
	return l, nil
}

// Close closes the connections.
func (l *Load) Close() {
	for _, c := range l.connections {
		_ = c.Close() // Nothing is sent that could be lost.
	}
}

// Send sends n requests, one each interval, and waits for their answers. The connections take
// turns. After an error, including an answer with an unexpected status, l cannot be used again.
func (l *Load) Send(ctx context.Context, n int, interval time.Duration) (Times, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(n)*interval+grace, errors.New("the answers did not arrive in time"))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx) // The first failure ends all goroutines.
	defer fail(nil)
	times := Times{Latency: make([]time.Duration, n), Delay: make([]time.Duration, n)}
	send := l.sendOpen
	if l.target.Connections == 0 {
		send = l.sendNew
	}
	send(ctx, fail, interval, times)
	if ctx.Err() != nil {
		return Times{}, fmt.Errorf("openloop: %w", context.Cause(ctx))
	}
	return times, nil
}

// sendOpen sends the requests on the open connections.
func (l *Load) sendOpen(ctx context.Context, fail func(error), interval time.Duration, times Times) {
	stop := context.AfterFunc(ctx, l.Close)
	defer stop()
	s := schedule{began: time.Now().Add(lead), interval: interval}
	var all sync.WaitGroup
	for first := range l.connections {
		all.Go(func() {
			if err := l.read(s, times.Latency, first); err != nil {
				fail(err)
			}
		})
	}
	if err := l.write(s, times.Delay); err != nil {
		fail(err)
	}
	all.Wait()
}

// sendNew sends each request on a new connection.
func (l *Load) sendNew(ctx context.Context, fail func(error), interval time.Duration, times Times) {
	var all sync.WaitGroup
	err := Each(ctx, len(times.Latency), interval, func(i int, due time.Time) error {
		times.Delay[i] = time.Since(due)
		all.Go(func() {
			if err := l.target.once(ctx); err != nil {
				fail(err)
			}
			times.Latency[i] = time.Since(due)
		})
		return nil
	})
	if err != nil {
		fail(err)
	}
	all.Wait()
}

// Each begins n calls, one each interval. begin gets the number of a call and the time at which the call is
// due. begin must not wait for the answer, because all calls are begun by one goroutine. Each returns the
// first error of begin, or the cause when ctx ends; it begins no further call then.
func Each(ctx context.Context, n int, interval time.Duration, begin func(i int, due time.Time) error) error {
	s := schedule{began: time.Now().Add(lead), interval: interval}
	return s.each(n, func(i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return begin(i, s.due(i))
	})
}

// write sends each request when it is due.
func (l *Load) write(s schedule, delays []time.Duration) error {
	return s.each(len(delays), func(i int) error {
		delays[i] = time.Since(s.due(i))
		return l.connections[i%len(l.connections)].send()
	})
}

// read reads the answers of a connection: those to the request with the number first, and to each further one
// after as many requests as there are connections.
func (l *Load) read(s schedule, latencies []time.Duration, first int) error {
	requests := (len(latencies) - first + len(l.connections) - 1) / len(l.connections)
	for range requests {
		n, err := l.connections[first].answer()
		if err != nil {
			return err
		}
		i := first + (n-l.sent[first])*len(l.connections)
		latencies[i] = time.Since(s.due(i))
	}
	l.sent[first] += requests
	return nil
}

// schedule gives the due times of requests.
type schedule struct {
	began    time.Time
	interval time.Duration
}

func (s schedule) due(i int) time.Time { return s.began.Add(time.Duration(i) * s.interval) }

// each calls begin when each of n requests is due.
func (s schedule) each(n int, begin func(i int) error) error {
	for i := range n {
		if err := s.await(i); err != nil {
			return err
		}
		if err := begin(i); err != nil {
			return err
		}
	}
	return nil
}

// await waits until request i is due. The kernel's sleep ends within some 50 µs. A timer of the
// Go runtime may be a millisecond late, which would hide the latency of the server.
func (s schedule) await(i int) error {
	for left := time.Until(s.due(i)); left > 0; left = time.Until(s.due(i)) {
		pause := unix.NsecToTimespec(left.Nanoseconds())
		if err := unix.Nanosleep(&pause, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("nanosleep: %w", err)
		}
	}
	return nil
}
