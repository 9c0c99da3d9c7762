package dogma

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// Source follows a document on a Central Dogma server. It may be followed several
// times, and by several pacers.
type Source struct {
	name    string // of the document, for errors
	address string
	path    string
	index   int
	wait    time.Duration
	settle  time.Duration
	holdFor time.Duration
	token   func() (string, error)
	client  *http.Client
	own     *http.Transport // of the source's own client, else nil
}

// New makes a source. It asks the server nothing yet.
func New(c Config) (*Source, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	token, err := c.tokens()
	if err != nil {
		return nil, err
	}
	s := &Source{
		name: c.String(), address: address, path: c.Path, index: c.Index,
		wait: c.Wait, settle: c.Settle, holdFor: c.HoldFor, token: token,
	}
	var transport http.RoundTripper
	if c.Client != nil {
		transport = c.Client.Transport
	} else {
		s.own = newTransport()
		transport = s.own
	}
	// Whoever answers with a redirect is not the server that the token is for.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.client = &http.Client{Transport: transport, CheckRedirect: stay}
	return s, nil
}

// newTransport makes one for a single long request at a time. Its probes and pings find
// out within half a minute that a connection is dead, on which nothing is sent while the server waits.
func newTransport() *http.Transport {
	dialer := net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// String says which document it is.
func (s *Source) String() string { return s.name }

// Follow reads the document and watches it until ctx is done, which ends it at once.
func (s *Source) Follow(ctx context.Context, to pace.Receiver) error {
	if s.client == nil {
		return fmt.Errorf("pace/dogma: %w", headgate.ErrNotMade)
	}
	defer s.closeIdle()
	f := follower{source: s, to: to}
	for {
		if !pause(ctx, f.step(ctx)) {
			return nil
		}
	}
}

// closeIdle gives up connections, so that the next request makes a new one, to where
// the server's name leads then. Those of a client that others use too are left alone.
func (s *Source) closeIdle() {
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
}
