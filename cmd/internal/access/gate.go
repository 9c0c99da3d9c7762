package access

import (
	"context"
	"crypto/tls"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/loglimit"
	"github.com/headgate/headgate/internal/config"
)

// Gate lets the clients of one listener in. A nil Gate is one without auth and limits. A Gate is safe for
// concurrent use.
type Gate struct {
	control   *Control
	addresses *addresses // of control
	listener  string
	terms     atomic.Pointer[terms]
	refused   *[reasons]loglimit.Limiter // Metrics count every refusal.
}

// terms say which clients the listener accepts.
type terms struct {
	auth     config.Auth
	everyone *Client // a client without auth
}

// Gate makes the Gate of a listener. local says that only this machine reaches the listener: without auth its
// clients may then do everything.
func (c *Control) Gate(listener string, auth config.Auth, local bool) *Gate {
	g := &Gate{control: c, addresses: &c.addresses, listener: listener, refused: new([reasons]loglimit.Limiter)}
	g.Change(auth, local)
	return g
}

// Beside makes the Gate of another address of the listener, with terms of its own. Both count refusals together.
func (g *Gate) Beside(auth config.Auth, local bool) *Gate {
	other := &Gate{control: g.control, addresses: g.addresses, listener: g.listener, refused: g.refused}
	other.Change(auth, local)
	return other
}

// Change replaces the terms of Control.Gate, for later requests. Sessions go on.
func (g *Gate) Change(auth config.Auth, local bool) {
	t := &terms{auth, &Client{scopes: open}}
	if local {
		t.everyone.scopes |= config.ScopeAdminister
	}
	g.terms.Store(t)
}

// CountApart makes the gate count addresses apart from those at other gates: clients that use up server.limits.address
// elsewhere do not lock an operator out at the same address. It returns g, and must be called before the gate is used.
// All gates of a Control that count apart share one count.
func (g *Gate) CountApart() *Gate {
	g.addresses = &g.control.apart
	return g
}

// Credentials are what a client shows.
type Credentials struct {
	// Token is a token; "" means none.
	Token string
	// TLS is the connection, for its verified client certificate; nil means none.
	TLS *tls.ConnectionState
}

// Auth says what clients must show.
func (g *Gate) Auth() config.Auth {
	if g == nil {
		return 0
	}
	return g.terms.Load().auth
}

// Arrive counts a call, a request or a command of an address, before anything else is known about it. The
// error is a *BusyError.
func (g *Gate) Arrive(from netip.Addr) error {
	if g == nil {
		return nil
	}
	return g.addresses.take(from)
}

// Connect counts a connection of an address, and reports whether it is within server.limits.connections.
func (g *Gate) Connect(from netip.Addr) bool {
	err := g.control.connections.take(from)
	g.Refused(err, from, nil)
	return err == nil
}

// Authenticate finds the client with credentials. A token comes before a certificate. The error is
// ErrNoCredentials or ErrWrongCredentials.
func (g *Gate) Authenticate(by *Credentials) (*Client, error) {
	_, client, err := g.identify(by)
	return client, err
}

func (g *Gate) identify(by *Credentials) (who identity, client *Client, err error) {
	t := g.terms.Load()
	switch {
	case t.auth == 0:
		return who, t.everyone, nil
	case t.auth&config.AuthToken != 0 && by.Token != "":
		who.digest = DigestOf(by.Token)
	case t.auth&config.AuthMTLS != 0 && by.TLS != nil && len(by.TLS.VerifiedChains) > 0:
		who.certificate = NameOf(by.TLS.VerifiedChains[0][0])
		if who.certificate == "" {
			return who, nil, ErrWrongCredentials
		}
	default:
		return who, nil, ErrNoCredentials
	}
	if client = g.control.callers.Load().find(&who, time.Now()); client == nil {
		return who, nil, ErrWrongCredentials
	}
	return who, client, nil
}

// Open is Authenticate for a stream or a connection. end is called, in a goroutine of its own, when the
// credentials end. The caller closes the Session.
func (g *Gate) Open(by *Credentials, end func()) (*Session, error) {
	who, client, err := g.identify(by)
	if err != nil {
		return nil, err
	}
	if g.Auth() == 0 {
		end = nil
	}
	return g.control.open(client, who, end), nil
}

// Refused counts a refusal, and logs some. Other errors than those of this package do nothing. from is the
// address of the client, and of is nil if it is not known.
func (g *Gate) Refused(err error, from netip.Addr, client *Client) {
	reason, ok := ReasonOf(err)
	if !ok || g == nil {
		return
	}
	if since, log := g.refused[reason].Event(time.Now()); log {
		g.control.log.Warn("a client was refused", "listener", g.listener, "reason", reason.String(), "peer", from.String(),
			"caller", client.Name(), "error", err, "since_last_line", since)
	}
}

// Refusals gives the number of refusals for a reason.
func (g *Gate) Refusals(r Reason) uint64 { return g.refused[r].Events() }

// Listener is the name of the listener.
func (g *Gate) Listener() string { return g.listener }

// Call is what a gate knows about the client of one call or stream.
type Call struct {
	gate   *Gate
	client *Client
	by     Credentials
	from   netip.Addr
}

type callKey struct{}

// with adds a call to a context.
func with(ctx context.Context, c *Call) context.Context { return context.WithValue(ctx, callKey{}, c) }

// CallOf gives the call of a context. It is nil without auth and limits. All methods of a nil Call work: its client
// may do what every client of a listener without auth may.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Client is the client of the call.
func (c *Call) Client() *Client {
	if c == nil {
		return nil
	}
	return c.client
}

// MayAdminister reports whether the client of a request has the scope administer, for an answer that shows it more.
func MayAdminister(ctx context.Context) bool {
	return CallOf(ctx).Client().Permit(config.ScopeAdminister) == nil
}

// Refused is Gate.Refused for the client of the call.
func (c *Call) Refused(err error) {
	if c != nil {
		c.gate.Refused(err, c.from, c.client)
	}
}

// Open begins a session for the rest of a stream. It is nil without auth.
func (c *Call) Open(end func()) (*Session, error) {
	if c == nil || c.gate.Auth() == 0 {
		return nil, nil //nolint:nilnil // Without auth nothing ends.
	}
	return c.gate.Open(&c.by, end)
}
