package client

import (
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/internal/lease/holder"
)

// Client has the leases of one program. It is safe for concurrent use.
type Client struct {
	config Config
	base   time.Time
	life   context.Context //nolint:containedctx // It ends the streams.
	end    context.CancelFunc
	ended  sync.WaitGroup
	alarm  chan struct{} // wakes watch; has room for one
	work   chan struct{} // wakes the sender of the stream; has room for one
	log    journal

	mu     sync.Mutex // Guards the fields below.
	holder *holder.Holder
	leases map[string]*Lease
	cancel context.CancelFunc // of the present stream, or nil
	fault  string             // why there is no stream; empty when a server answers
	closed bool
}

const (
	// sample is the time between two estimates of the demand.
	sample = 100 * time.Millisecond
	// patience is how long a server may leave a report without an answer.
	patience = 10 * time.Second
	// farewell bounds the time that Close takes for the releases.
	farewell = time.Second
	// mostMessage bounds a message of a server, in bytes, and window what it may send before it is read.
	mostMessage, window = 1 << 20, 1 << 20
)

// New makes a Client, which connects in the background when it has a lease.
func New(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	k := &Client{config: c, base: time.Now(), leases: make(map[string]*Lease), alarm: make(chan struct{}, 1), work: make(chan struct{}, 1)}
	k.log.to, k.log.kinds = c.Log, make(map[string]*kind)
	k.holder = holder.New(holder.Config{Name: name(), OnLoss: c.OnLoss, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))})
	k.life, k.end = context.WithCancel(context.Background())
	k.ended.Go(k.watch)
	k.ended.Go(k.run)
	return k, nil
}

// name returns an unguessable name: a server binds it to the caller.
func name() string {
	var random [16]byte
	_, _ = crand.Read(random[:]) // It never fails.
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// conn makes a connection for one stream. A connection that has failed would refuse streams during the pauses of gRPC, beside
// those of run.
func (k *Client) conn(at string) (*grpc.ClientConn, error) {
	secured := insecure.NewCredentials()
	if k.config.TLS != nil {
		secured = credentials.NewTLS(k.config.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secured), grpc.WithNoProxy(),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostMessage)),
	}
	if k.config.Dial != nil {
		options = append(options, grpc.WithContextDialer(k.config.Dial))
	}
	return grpc.NewClient("passthrough:///"+at, options...)
}

// Lease claims a resource. A resource has at most one Lease at a time, and a client at most 1,000. The
// amount is 0 until a server answers.
func (k *Client) Lease(resource string) (*Lease, error) { return k.claim(resource, 0, nil) }

// claim claims a resource for waiting units: the first report has them.
func (k *Client) claim(resource string, waiting int64, notify func(bucket.Rate)) (*Lease, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, errClosed
	}
	now := k.now()
	if err := k.holder.Claim(now, resource); err != nil {
		return nil, fmt.Errorf("lease: resource %.300q: %w", resource, err)
	}
	l := &Lease{client: k, resource: resource, changed: make(chan struct{}, 1), notify: notify}
	l.estimate.Add(now, 0)
	l.waiting.Store(max(waiting, 0))
	k.holder.Want(resource, l.wants(now))
	k.leases[resource] = l
	k.wake()
	return l, nil
}

// Close releases all leases and ends the stream. It waits at most a second for the server.
func (k *Client) Close() error {
	k.mu.Lock()
	for resource, l := range k.leases {
		k.holder.Release(resource)
		poke(l.changed)
		l.tell(State{Lost: true}, 0)
	}
	clear(k.leases)
	k.closed = true
	k.mu.Unlock()
	k.wake()
	late := time.AfterFunc(farewell, k.end)
	k.ended.Wait()
	late.Stop()
	k.end()
	return nil
}

// now returns the time of the client, by its monotonic clock.
func (k *Client) now() headgate.Instant { return headgate.Instant(time.Since(k.base)) }

// wake makes watch and the sender look for work.
func (k *Client) wake() {
	poke(k.alarm)
	poke(k.work)
}

func poke(alarm chan struct{}) {
	select {
	case alarm <- struct{}{}:
	default:
	}
}

// watch estimates demands, ends leases in time and tells their users, until the client is closed.
func (k *Client) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, closed := k.look()
		if closed {
			return
		}
		timer.Reset(next)
		select {
		case <-k.alarm:
		case <-timer.C:
		}
	}
}

// look does the work of watch, and returns the time until there is more.
func (k *Client) look() (next time.Duration, closed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	next = time.Hour
	for resource, l := range k.leases {
		if l.measure(now) {
			next = sample
		}
		k.holder.Want(resource, l.wants(now))
	}
	k.holder.Advance(now)
	if k.holder.Silent(now) > patience && k.cancel != nil {
		k.log.fault("the server does not answer: another one is asked")
		k.fail("the server does not answer")
		k.cancel()
	}
	if wait := k.publish(now); wait > 0 {
		next = min(next, wait)
	}
	due := k.holder.Next(now)
	if due <= now {
		poke(k.work)
		due = now.Add(sample) // The sender does it.
	}
	return min(next, due.Sub(now)), k.closed
}

// fail notes why there is no stream, until a server answers. The first reason stays, so that users do not get a change for
// each attempt. The caller holds mu.
func (k *Client) fail(reason string) {
	if k.fault == "" {
		k.fault = fmt.Sprintf("%.512s", reason)
	}
}

// publish tells the users of leases what has changed. It returns the time after which it must be called for the log, or 0.
// The caller holds mu.
func (k *Client) publish(now headgate.Instant) (wait time.Duration) {
	lost, group := 0, ""
	for resource, l := range k.leases {
		s := k.holder.Status(now, resource)
		if s.Lost {
			lost, group = lost+1, resource
		}
		state := l.stateOf(s, k.base.Add(now.Sub(0)))
		if state.Fault != l.state.Fault && s.Refused != nil {
			k.log.fault("a server refuses a claim: there is no lease of this resource", "resource", resource, "reason", state.Fault)
		}
		if state != l.state {
			l.state = state
			poke(l.changed)
			l.tell(state, s.Left)
		}
	}
	return k.log.losses(lost, group, k.config.OnLoss)
}
