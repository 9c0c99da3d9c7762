package postgres

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

const (
	// minPause and maxPause bound the pause before the next connection. Each is random between half and all of it.
	minPause, maxPause = 50 * time.Millisecond, time.Second
	// readOnlyTime is how long a server that refuses writes is followed until the hosts are tried again: behind one address, a primary
	// may have taken its place.
	readOnlyTime = 750 * time.Millisecond
	// fencedEvery is the interval of lines about a server that refuses writes.
	fencedEvery = 10 * time.Minute
	// readGap is the shortest time between two reads, however often the server notifies.
	readGap = 20 * time.Millisecond
)

// follower is one run of Follow. It belongs to one goroutine.
type follower struct {
	*Source

	to       source.Receiver
	at       position
	answered bool // The current connection has read everything.
	// fencedLogged is when a line said last that the followed server refuses writes; zero since the last one that takes them.
	fencedLogged time.Time
}

// run follows until ctx ends.
func (f *follower) run(ctx context.Context) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		f.answered = false
		err := f.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if f.answered && errors.Is(err, errReadOnly) {
			pause = minPause
			continue // It is no failure: the next connection may lead to the same server, and follows it.
		}
		f.to.Failed(fmt.Errorf("config/source/postgres: %s: %w%s", f.config, err, advice(err)))
		if f.answered {
			pause = minPause
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return
		}
	}
}

// session follows on one connection until something fails. It continues after the last position, if the log still has what has
// changed since. After a crash or a failover, it begins with all objects: a server may give the numbers of lost transactions to
// other ones, and a snapshot would show those as seen.
func (f *follower) session(ctx context.Context) error {
	c, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.run(ctx, "LISTEN "+channel(f.config.Schema)); err != nil {
		return err
	}
	if err := c.readRecovered(ctx); err != nil {
		return err
	}
	read := f.readAll
	if f.at.snapshot != "" {
		read = f.read
	}
	for {
		if err := read(ctx, c); err != nil {
			return err
		}
		c.foreign.log(f.config.Logger)
		f.logFenced(c.readOnly)
		if err := f.wait(ctx, c); err != nil {
			return err
		}
		if c.readOnly && time.Since(c.opened) > readOnlyTime {
			return errReadOnly
		}
		read = f.read
	}
}

// logFenced says at once, and then once in fencedEvery, that the followed server refuses writes: it may be a former primary whose
// objects are old.
func (f *follower) logFenced(fenced bool) {
	now := time.Now()
	switch {
	case !fenced && !f.fencedLogged.IsZero():
		f.config.Logger.Info("the source follows a server again that takes writes", "server", f.config.String())
		f.fencedLogged = time.Time{}
	case fenced && (f.fencedLogged.IsZero() || now.Sub(f.fencedLogged) >= fencedEvery):
		f.config.Logger.Warn("the source follows a server that refuses writes: its objects are old if another server was promoted: "+
			"lead source.postgres.hosts to the primary, or end default_transaction_read_only", "server", f.config.String())
		f.fencedLogged = now
	}
}

// readRecovered sets connection.recovered. If the server does not tell, each connection has another value, and begins with all objects.
func (c *connection) readRecovered(ctx context.Context) error {
	err := c.rows(ctx, func(r row) error { return r.scan(&c.recovered) }, recoveredSQL)
	if c.recovered == "" {
		c.recovered = cryptorand.Text()
	}
	if code(err) == "42501" { // insufficient_privilege
		return nil
	}
	return err
}

func (f *follower) readAll(ctx context.Context, c *connection) error {
	sent := time.Now()
	at, change, err := c.all(ctx, f.Source)
	if err != nil {
		return err
	}
	f.at, f.answered = at, true
	f.to.Changed(change)
	f.to.Reached(sent)
	return nil
}

// read gives the receiver what has changed.
func (f *follower) read(ctx context.Context, c *connection) error {
	sent := time.Now()
	now, err := c.head(ctx, f.Source, f.at)
	if err != nil {
		return err
	}
	if now.known && now.news == 0 {
		f.at, f.answered = now.position, true
		f.to.Reached(sent)
		return nil
	}
	if !now.known {
		return f.readAll(ctx, c)
	}
	at, changes, all, err := c.news(ctx, f.Source, f.at)
	switch {
	case err != nil:
		return err
	case all:
		return f.readAll(ctx, c)
	case at.objects > int64(f.config.MaxObjects):
		return f.tooMany()
	}
	f.at, f.answered = at, true
	for _, change := range changes {
		f.to.Changed(change)
	}
	f.to.Reached(sent)
	return nil
}

// wait returns after a notification, also one that has arrived during the last read, or after the interval.
func (f *follower) wait(ctx context.Context, c *connection) error {
	select {
	case <-time.After(readGap):
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.notified = false }()
	if c.notified {
		return nil
	}
	inner, cancel := context.WithTimeout(ctx, f.config.Poll-f.config.Poll/8+rand.N(f.config.Poll/4))
	defer cancel()
	err := c.WaitForNotification(inner)
	if err != nil && ctx.Err() == nil && errors.Is(inner.Err(), context.DeadlineExceeded) && !c.IsClosed() {
		return nil
	}
	return err
}
