package access

import (
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/limit"
)

// Control has the callers of a server, and the limits of its clients. It is safe for concurrent use.
type Control struct {
	log         *slog.Logger
	clock       func() headgate.Instant
	callers     atomic.Pointer[callers]
	addresses   addresses // calls, requests and commands
	apart       addresses // those at gates with CountApart
	connections addresses

	mu       sync.Mutex // Guards the fields below.
	buckets  map[string]*bucket
	sessions map[*Session]struct{}
	expiry   *time.Timer // ends the sessions of the token that ends next
	closed   bool
}

// callers are the callers of one configuration.
type callers struct {
	all          []*Client
	byToken      map[uint64][]credential // by the first bytes of the digest
	certificates map[string]*Client
}

// credential is a token of a caller.
type credential struct {
	digest Digest
	client *Client
}

// New makes a Control without callers and limits. exempt are the addresses that have no limit of their own;
// nil exempts none.
func New(log *slog.Logger, exempt func(netip.Addr) bool) *Control {
	c := &Control{log: log, clock: wall(time.Now().Add(-time.Hour)), sessions: map[*Session]struct{}{}, buckets: map[string]*bucket{}}
	c.addresses = addresses{setting: "address", memory: addressMemory, exempt: exempt}
	c.apart = addresses{setting: "address", memory: apartMemory, exempt: exempt}
	c.connections = addresses{setting: "connections", memory: addressMemory, exempt: exempt}
	c.callers.Store(&callers{})
	return c
}

// Prepare checks callers and limits. The result puts them into effect: sessions of callers that are no
// longer among them end.
func (c *Control) Prepare(all []config.Caller, limits config.ServerLimits) (commit func(), err error) {
	var plan *limit.Plan
	if limits.Caller.Per > 0 {
		plan, err = compile(limits.Caller)
	}
	var unknown [2]error
	for i, l := range []headgate.Limit{limits.Address, limits.Connections} {
		if l.Per > 0 {
			_, unknown[i] = compile(l)
		}
	}
	if err = errors.Join(err, unknown[0], unknown[1]); err != nil {
		return nil, fmt.Errorf("access: server.limits: %w", err)
	}
	return func() { c.commit(all, limits, plan) }, nil
}

func (c *Control) commit(all []config.Caller, limits config.ServerLimits, plan *limit.Plan) {
	err := errors.Join(c.addresses.change(limits.Address), c.apart.change(limits.Address), c.connections.change(limits.Connections))
	if err != nil {
		c.log.Error("a limit of server.limits has no effect", "error", err)
	}
	c.mu.Lock()
	next := &callers{byToken: map[uint64][]credential{}, certificates: map[string]*Client{}}
	buckets := make(map[string]*bucket, len(all))
	for i := range all {
		next.add(&all[i], c.bucketOf(all[i].Name, plan, buckets))
	}
	c.buckets = buckets
	c.callers.Store(next)
	c.mu.Unlock()
	c.endSessions()
}

// bucketOf gives the bucket of a caller, with its state. The caller holds mu.
func (c *Control) bucketOf(name string, plan *limit.Plan, into map[string]*bucket) *bucket {
	if plan == nil {
		return nil
	}
	b := c.buckets[name]
	if b == nil {
		b = &bucket{setting: "caller", clock: c.clock, plan: plan, last: plan}
	}
	b.change(plan)
	into[name] = b
	return b
}

func (s *callers) add(c *config.Caller, units *bucket) {
	client := newClient(c, units)
	s.all = append(s.all, client)
	for _, digest := range c.Tokens {
		at := prefixOf(&digest)
		s.byToken[at] = append(s.byToken[at], credential{digest, client})
	}
	if c.Certificate != "" {
		s.certificates[c.Certificate] = client
	}
}

// prefixOf gives the first bytes of a digest. A client does not know the digests of tokens that it does
// not have, so that the time of a search in a map tells it nothing.
func prefixOf(d *Digest) (n uint64) {
	for _, b := range d[:8] {
		n = n<<8 | uint64(b)
	}
	return n
}

// find gives the caller with credentials that have not ended; nil if there is none.
func (s *callers) find(by *identity, now time.Time) *Client {
	client := s.certificates[by.certificate]
	if by.certificate == "" {
		for _, c := range s.byToken[prefixOf(&by.digest)] {
			if subtle.ConstantTimeCompare(c.digest[:], by.digest[:]) == 1 {
				client = c.client
			}
		}
	}
	if client == nil || client.ended(now) {
		return nil
	}
	return client
}

// identity is what a client has proved: a token, or else the name of a certificate.
type identity struct {
	digest      Digest
	certificate string
}

// NameOf gives the name of a certificate: its first URI, else its first DNS name, else its common name.
func NameOf(cert *x509.Certificate) string {
	switch {
	case len(cert.URIs) > 0:
		return cert.URIs[0].String()
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	default:
		return cert.Subject.CommonName
	}
}

// Sessions is the number of streams and connections of callers.
func (c *Control) Sessions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// Close ends the timer.
func (c *Control) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.expiry != nil {
		c.expiry.Stop()
	}
}
