// Package openloop makes calls at a constant rate, also while answers are slow. Load sends HTTP
// requests, and Each begins calls of any kind. The latency of a call is measured from the time at
// which the call was due, so that a delayed call counts with its delay.
package openloop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Load is a set of open connections to one server. One goroutine at a time may use a Load.
type Load struct {
	connections []*connection
	request     []byte
}

type connection struct {
	net.Conn

	reader *bufio.Reader
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

// Dial opens n connections to an http URL.
func Dial(ctx context.Context, target string, n int) (*Load, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("openloop: %w", err)
	}
	l := &Load{request: fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", u.RequestURI(), u.Host)}
	for range n {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("openloop: %w", err)
		}
		l.connections = append(l.connections, &connection{conn, bufio.NewReader(conn)})
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
// turns. After an error, including an answer other than 200, l cannot be used again.
func (l *Load) Send(ctx context.Context, n int, interval time.Duration) (Times, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(n)*interval+grace, errors.New("the answers did not arrive in time"))
	defer cancel()
	stop := context.AfterFunc(ctx, l.Close)
	defer stop()
	s := schedule{began: time.Now().Add(lead), interval: interval}
	times := Times{Latency: make([]time.Duration, n), Delay: make([]time.Duration, n)}
	failures := make([]error, len(l.connections)+1)
	var all sync.WaitGroup
	for first, c := range l.connections {
		all.Go(func() {
			if failures[first] = c.read(s, times.Latency, first, len(l.connections)); failures[first] != nil {
				cancel() // Otherwise the other goroutines would continue to the end.
			}
		})
	}
	if err := l.write(s, times.Delay); err != nil {
		failures[len(l.connections)] = err
		cancel()
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return Times{}, fmt.Errorf("openloop: %w", errors.Join(context.Cause(ctx), err))
	}
	return times, nil
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
		_, err := l.connections[i%len(l.connections)].Write(l.request)
		return err
	})
}

// read reads the answers to the requests of the connection: the first, and each further one
// after step requests.
func (c *connection) read(s schedule, latencies []time.Duration, first, step int) error {
	for i := first; i < len(latencies); i += step {
		response, err := http.ReadResponse(c.reader, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		latencies[i] = time.Since(s.due(i))
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("got status %d, want 200", response.StatusCode)
		}
	}
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
