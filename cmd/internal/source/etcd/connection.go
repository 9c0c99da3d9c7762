package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

const (
	// keepAlive is the interval of pings on a silent connection: etcd closes connections that ping more often
	// than every 5 s.
	keepAlive = 10 * time.Second
	// reconnectPause bounds the pause before a lost connection is opened again.
	reconnectPause = 500 * time.Millisecond
	// maxAnswer bounds one answer, in bytes. etcd's own bound of a value is 1.5 MiB by default.
	maxAnswer = 64 << 20
)

// connection makes the client when it is needed first. etcd's client authenticates while it is made, so that
// a client with a password cannot be made while etcd is unreachable.
type connection struct {
	config Config
	secure *handshakes   // nil for plain text.
	lock   chan struct{} // Held while the fields below are used. A channel, because the wait ends with a context.
	client *clientv3.Client
	end    context.CancelFunc
	closed bool
}

func newConnection(c Config) *connection {
	made := &connection{config: c, lock: make(chan struct{}, 1)}
	if c.TLS != nil {
		made.secure = newHandshakes(c.TLS)
	}
	return made
}

var errClosed = errors.New("config/source/etcd: the source is closed")

// get gives the client.
func (c *connection) get(ctx context.Context) (*clientv3.Client, error) {
	select {
	case c.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.lock }()
	if c.closed {
		return nil, errClosed
	}
	if c.client != nil {
		return c.client, nil
	}
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	client, err := c.open(life)
	if !stop() && err == nil { // The context of the call has ended, and the client with it.
		err = errors.Join(ctx.Err(), client.Close())
	}
	if err != nil {
		end()
		return nil, err
	}
	c.client, c.end = client, end
	return client, nil
}

func (c *connection) open(life context.Context) (*clientv3.Client, error) {
	settings := clientv3.Config{
		Endpoints: c.config.Endpoints, TLS: c.config.TLS, Context: life,
		DialTimeout: c.config.Timeout, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: c.config.Timeout, MaxCallRecvMsgSize: maxAnswer,
		// By default, the client repeats a call until its deadline. Two attempts at least: the first may find an old token.
		MaxUnaryRetries: uint(len(c.config.Endpoints)) + 1,
		// Errors report every failure. The client's own log would print them a second time.
		Logger: clientv3.NewCtxClient(life).GetLogger(),
		DialOptions: []grpc.DialOption{
			grpc.WithNoProxy(), grpc.WithChainUnaryInterceptor(failFast),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectPause},
				MinConnectTimeout: c.config.Timeout,
			}),
		},
	}
	if c.secure != nil { // The later option replaces that of etcd's client.
		settings.DialOptions = append(settings.DialOptions,
			grpc.WithTransportCredentials(c.secure), grpc.WithChainUnaryInterceptor(c.secure.answered))
	}
	if c.config.User != "" {
		password, err := c.config.Password()
		if err != nil {
			return nil, fmt.Errorf("the password of etcd's user %q: %w", c.config.User, err)
		}
		settings.Username, settings.Password = c.config.User, password
	}
	return clientv3.New(settings)
}

// Dial makes a client of etcd for another use than a source, with the settings of c for servers, TLS, user and timeout. The client
// ends with life. With a user, Dial waits for an answer of etcd, because etcd's client authenticates while it is made.
func Dial(life context.Context, c Config) (*clientv3.Client, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return newConnection(c).open(life)
}

// failFast makes a call fail with its reason if no member can be reached. By default, etcd's client waits, and the only
// error is the deadline.
func failFast(
	ctx context.Context, method string, req, reply any, on *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	return call(ctx, method, req, reply, on, append(opts, grpc.WaitForReady(false))...)
}

// failed closes a client whose password is no longer valid, or whose server cannot serve. The next call makes another one, which
// resolves and dials the addresses again.
func (c *connection) failed(client *clientv3.Client, err error) {
	if (c.config.User == "" || !isUnauthenticated(err)) && !LeavesServer(err) {
		return
	}
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	if c.client == client {
		c.drop()
	}
}

// drop ends the client. The caller holds the lock.
func (c *connection) drop() {
	if c.client == nil {
		return
	}
	_ = c.client.Close() // It fails only with what end also does.
	c.end()
	c.client, c.end = nil, nil
}

func (c *connection) close() {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	c.drop()
	c.closed = true
}

func isUnauthenticated(err error) bool {
	for _, one := range []error{
		rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserNotFound, rpctypes.ErrAuthOldRevision,
	} {
		if errors.Is(rpctypes.Error(err), one) {
			return true
		}
	}
	return false
}
