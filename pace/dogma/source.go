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

// Source follows a document on a Central Dogma server. Several pacers may use one Source,
// at the same time or one after the other.
type Source struct {
	name         string // name of the document, for errors
	address      string
	path         string
	index        int
	wait         time.Duration
	settle       time.Duration
	holdFor      time.Duration
	token        func() (string, error)
	client       *http.Client
	ownTransport *http.Transport // nil if Config.Client is set
}

// New returns a source. It sends no request to the server.
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
		s.ownTransport = newTransport()
		transport = s.ownTransport
	}
	// A redirect could send the token to another server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.client = &http.Client{Transport: transport, CheckRedirect: stay}
	return s, nil
}

// newTransport returns a transport for one long request at a time. A watch sends no data
// for a long time. TCP probes and HTTP/2 pings detect a dead connection within half a minute.
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

// String returns the name of the document.
func (s *Source) String() string { return s.name }

// Follow reads the document and watches it. It returns as soon as ctx is done.
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

// closeIdle closes idle connections, so that the next request resolves the server's name
// again. It leaves the connections of Config.Client, which other code may use.
func (s *Source) closeIdle() {
	if s.ownTransport != nil {
		s.ownTransport.CloseIdleConnections()
	}
}
