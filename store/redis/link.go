package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/store/resp"
	"github.com/headgate/headgate/internal/store/script"
)

// Defaults for client settings that the operator leaves unset. A few connections carry many short
// decisions. Therefore buffers are small, silent connections are closed soon, and the client sends
// no call twice.
const (
	bufferEachConn   = 64 << 10
	dialTimeout      = time.Second
	silenceTimeout   = time.Second
	refreshInterval  = time.Second
	maxRedirections  = 8
	firstConnectWait = 50 * time.Millisecond
	maxConnectWait   = time.Second
	closePatience    = 250 * time.Millisecond
)

// link is the connection to the servers. A background goroutine connects, and retries until it
// succeeds.
type link struct {
	store  *Store
	client atomic.Pointer[rueidis.Client]
	// tried is closed after the first attempt to connect, successful or not.
	tried chan struct{}
	// failure is the error of the last attempt to connect.
	failure atomic.Pointer[error]
	last    breaker.LastFailure // the same error, with its time
	pauses  pauses

	life    context.Context //nolint:containedctx // because it is the store's own life, which Close ends
	end     context.CancelFunc
	running sync.WaitGroup
}

func (l *link) open(s *Store) {
	l.store, l.tried = s, make(chan struct{})
	l.life, l.end = context.WithCancel(context.Background())
	l.running.Go(l.connect)
}

func (l *link) close() {
	l.end()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.running.Wait()
		if client := l.client.Load(); client != nil {
			(*client).Close()
		}
	}()
	select {
	case <-closed:
	case <-time.After(closePatience): // The goroutine waits for answers, and a hanging server gives none.
	}
}

// connect makes the client. The client library reconnects by itself afterwards.
func (l *link) connect() {
	option, notified := l.option(), false
	for wait := firstConnectWait; ; wait = min(2*wait, maxConnectWait) {
		client, err := rueidis.NewClient(option)
		if err == nil {
			l.client.Store(&client)
			l.markTried()
			if notified {
				l.store.tell(Change{Node: l.store.queues.only.node, State: breaker.Closed})
			}
			if l.store.config.Kind == Cluster {
				l.store.queues.follow(l.life, client)
			}
			return
		}
		if client != nil {
			client.Close()
		}
		err = couldNotAt(l.store.config.Kind, "connect", err)
		l.failure.Store(&err)
		l.last.Note(time.Now(), err)
		l.markTried()
		if !notified {
			notified = true
			l.store.tell(Change{Node: l.store.queues.only.node, State: breaker.Open, Err: err})
		}
		select {
		case <-l.life.Done():
			return
		case <-time.After(wait):
		}
	}
}

// markTried closes tried. Only connect may call it, because it is not safe for concurrent use.
func (l *link) markTried() {
	select {
	case <-l.tried:
	default:
		close(l.tried)
	}
}

// get gives the client. It waits for the first attempt to connect, but not for later attempts.
func (l *link) get(ctx context.Context) (rueidis.Client, error) {
	if client := l.client.Load(); client != nil {
		return *client, nil
	}
	select {
	case <-l.tried:
	case <-ctx.Done():
		return nil, fmt.Errorf("redis: no connection yet: %w: raise store_timeout, or check that the server answers", ctx.Err())
	}
	if client := l.client.Load(); client != nil {
		return *client, nil
	}
	return nil, fmt.Errorf("%w: %w", headgate.ErrUnavailable, *l.failure.Load())
}

// option adds the defaults to the operator's settings.
func (l *link) option() rueidis.ClientOption {
	o := l.store.config.Client
	o.ForceSingleClient = l.store.config.Kind == Single
	o.DisableCache, o.DisableRetry = true, true
	if o.PipelineMultiplex == 0 {
		o.PipelineMultiplex = -1 // A negative value means one connection to each node. A second connection would take time to open.
	}
	if o.ReadBufferEachConn == 0 {
		o.ReadBufferEachConn = bufferEachConn
	}
	if o.WriteBufferEachConn == 0 {
		o.WriteBufferEachConn = bufferEachConn
	}
	if o.Dialer.Timeout == 0 {
		o.Dialer.Timeout = dialTimeout
	}
	if o.Sentinel.Dialer.Timeout == 0 {
		o.Sentinel.Dialer.Timeout = dialTimeout
	}
	if o.ConnWriteTimeout == 0 {
		o.ConnWriteTimeout = max(silenceTimeout, l.store.config.Timeout)
	}
	if o.ClusterOption.ShardsRefreshInterval == 0 {
		o.ClusterOption.ShardsRefreshInterval = refreshInterval
	}
	if o.ClusterOption.MaxMovedRedirections == 0 {
		o.ClusterOption.MaxMovedRedirections = maxRedirections
	}
	if o.Sentinel.MasterSet != "" && o.Sentinel.TopologyRefreshInterval == 0 {
		o.Sentinel.TopologyRefreshInterval = refreshInterval
	}
	dial := o.DialCtxFn
	switch {
	case dial != nil:
	case o.DialFn != nil:
		dial = func(_ context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
			return o.DialFn(addr, d, t)
		}
	default:
		dial = dialPlainOrTLS
	}
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
		return l.dial(ctx, addr, d, t, dial)
	}
	return o
}

type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// dial opens a connection and wraps it in a check of all replies, above TLS. It fails after the
// store is closed.
func (l *link) dial(ctx context.Context, addr string, d *net.Dialer, t *tls.Config, dial dialFunc) (net.Conn, error) {
	// Without this call, inline senders would wait for the new connection beyond their deadlines.
	l.store.queues.alarm()
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	stop := context.AfterFunc(l.life, cancel)
	defer stop()
	conn, err := dial(ctx, addr, d, t)
	if err != nil {
		if t != nil && timedOut(err) && answersWithoutTLS(l.life, addr, d, dial) {
			return nil, errWithoutTLS
		}
		return nil, err
	}
	if l.store.config.Client.DisableTCPNoDelay {
		delaySmallWrites(conn)
	}
	checked := resp.Wrap(conn, script.MaxReply(maxBatch))
	checked.LeaveAfter(l.judge(addr))
	return checked, nil
}

// delaySmallWrites implements DisableTCPNoDelay. The client cannot set the option itself, because
// the connection is wrapped.
func delaySmallWrites(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if plain, ok := conn.(*net.TCPConn); ok {
		_ = plain.SetNoDelay(false) // The client ignores this error too.
	}
}

func dialPlainOrTLS(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
	if t == nil {
		return d.DialContext(ctx, "tcp", addr)
	}
	secure := &tls.Dialer{NetDialer: d, Config: t}
	return secure.DialContext(ctx, "tcp", addr)
}
