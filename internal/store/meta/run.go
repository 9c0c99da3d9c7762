package meta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// run keeps the link connected until the client is closed.
func (l *link) run() {
	ctx, failures := l.client.ctx, 0
	for {
		steady, err := l.once(ctx)
		if ctx.Err() != nil {
			l.drop(shut, ErrClosed)
			return
		}
		// The server may have closed an idle connection, so new requests wait for the next
		// connection. Requests fail at once when the server is silent or keeps closing connections.
		if steady && !errors.Is(err, ErrStalled) {
			l.drop(dialing, err)
		} else {
			l.drop(down, err)
		}
		if steady {
			failures = 0
			continue
		}
		failures++
		wait(ctx, backoff(l.client.config.MaxBackoff, failures))
	}
}

// once connects, and serves until the connection ends. err says why it ended. steady says that the
// connection has worked or lived long, so the next attempt may follow at once.
func (l *link) once(ctx context.Context) (steady bool, err error) {
	conn, err := l.connect(ctx)
	if err != nil {
		return false, err
	}
	began := time.Now()
	l.become(up, nil)
	answered, err := l.serve(ctx, conn)
	return answered || time.Since(began) >= l.client.config.MaxBackoff, err
}

// connect makes a connection, and checks that the server speaks the meta protocol.
func (l *link) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.client.config.DialTimeout)
	defer cancel()
	conn, err := l.client.config.Dial(ctx, "tcp", l.client.config.Addr)
	if err != nil {
		return nil, err
	}
	// The end of ctx, by its deadline or by Close, ends the blocking calls below.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = greet(conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the server does not answer mn: %w", err)
	}
	return conn, nil
}

// greet sends a request without effect, and reads the answer.
func greet(conn net.Conn) error {
	if _, err := io.WriteString(conn, "mn\r\n"); err != nil {
		return err
	}
	var answer [4]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if string(answer[:]) != "MN\r\n" {
		return unexpected(answer[:])
	}
	return nil
}

// backoff gives the pause after a number of failures in a row. The first is a 64th of the longest,
// and each failure doubles it. Half of the pause is random, so that many clients of one server do
// not reconnect together.
func backoff(longest time.Duration, failures int) time.Duration {
	pause := longest >> max(0, 7-failures)
	return pause/2 + rand.N(pause/2+1)
}

// wait pauses, or until ctx ends.
func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
