package xds

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate"
)

// Source follows the configurations of a management server. Several calls of Follow may use one
// Source at the same time.
type Source struct {
	config  Config
	headers metadata.MD
	secure  *tls.Config // the certificate files at the time of New; nil for plain text
	// dial replaces the network in tests; nil means the network.
	dial func(context.Context, string) (net.Conn, error)
}

// New returns a source. It reads the certificate files, and sends no request to the server.
func New(c Config) (*Source, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	c.NodeMetadata = maps.Clone(c.NodeMetadata)
	s := &Source{config: c, headers: metadata.New(c.Headers)}
	if c.TLS != nil {
		files := *c.TLS
		s.config.TLS = &files
		secure, err := files.load()
		if err != nil {
			return nil, err
		}
		s.secure = secure
	}
	return s, nil
}

// String returns the server and the node.
func (s *Source) String() string { return s.config.String() }

// Follow calls apply with each new set of resources, until ctx is done. Then it returns nil. It
// returns an error only if the source was not made by New, or if apply or fault is nil.
//
// apply puts a set of resources in force, in place of the last set. An error refuses the set, and
// the server gets the text of the error, cut to 1 KiB. Follow may call apply with a refused set
// again, after a pause. fault gets errors that Follow handles itself: a lost stream, a refused set
// as a [RefusedError], and unexpected responses. Follow calls both functions from its own goroutine,
// one call at a time. Both should return soon: Follow reads no response meanwhile.
func (s *Source) Follow(ctx context.Context, apply func([]Resource) error, fault func(error)) error {
	switch {
	case s.headers == nil:
		return fmt.Errorf("config/source/xds: %w", headgate.ErrNotMade)
	case apply == nil || fault == nil:
		return errors.New("config/source/xds: Follow needs the functions apply and fault")
	}
	f := &follower{source: s, apply: apply, faults: faults{to: fault}, secure: s.secure, pingEvery: firstPing}
	for attempt := 0; ; attempt++ {
		answered, err := f.run(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the caller has ended the stream
		}
		if answered {
			attempt = 0
		}
		f.slowPings(err)
		f.faults.report("stream", fmt.Errorf("config/source/xds: the stream of %s is lost, and will be opened again: %s%s",
			s, reason(err), advice(err)))
		if !pause(ctx, s.config.Backoff.pause(attempt, rand.Float64())) {
			return nil
		}
	}
}

// pause returns the pause before an attempt, which counts from 0. random is from 0 to 1.
func (b Backoff) pause(attempt int, random float64) time.Duration {
	pause := float64(b.Initial)
	for range attempt {
		if pause *= b.Factor; pause >= float64(b.Max) || b.Factor <= 1 {
			break
		}
	}
	pause = max(float64(b.Initial), min(pause, float64(b.Max)))
	if b.Jitter {
		pause *= 1 - jitter*random
	}
	return time.Duration(pause)
}

// jitter is the largest part of a pause that is cut.
const jitter = 0.2

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
