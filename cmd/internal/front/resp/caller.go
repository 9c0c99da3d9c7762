package resp

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/internal/config"
)

// caller is who a connection belongs to.
type caller struct {
	gate    *access.Gate
	from    netip.Addr
	session *access.Session // nil before authentication, and without auth
	fault   error           // why the certificate gives no session
}

// locked reports whether the connection must authenticate first.
func (a *caller) locked() bool { return a.session == nil && a.gate.Auth() != 0 }

// client is the client with its present rights; nil without auth.
func (a *caller) client() *access.Client {
	if a.session == nil {
		return nil
	}
	return a.session.Client()
}

// identify begins the caller of a connection, by its certificate if it has one.
func (c *conn) identify() {
	c.access.gate = c.server.gate
	if tcp, ok := c.net.RemoteAddr().(*net.TCPAddr); ok {
		c.access.from = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	if secured, ok := c.net.(*tls.Conn); ok && c.access.gate.Auth()&config.AuthMTLS != 0 {
		state := secured.ConnectionState()
		c.access.fault = c.begin(&access.Credentials{TLS: &state}) // Commands get the error.
	}
}

// refused sets the fault of a command that the caller may not send.
func (w *work) refused(command *command) bool {
	a, k := w.caller, kindUnknown
	if command.description != nil {
		k = command.description.kind
	}
	command.fault = a.gate.Arrive(a.from)
	switch {
	case command.fault != nil:
	case a.locked():
		if k != kindAuth && k != kindHello && k != kindQuit && k != kindReset {
			command.fault = cmp.Or(a.fault, access.ErrNoCredentials)
		}
	case k == kindCell || k == kindCrab:
		if command.fault = w.client.Permit(config.ScopeSendLimits); command.fault == nil {
			command.fault = w.client.TakeAll(1)
		}
	case k == kindDecide: // The batch takes the units.
		command.fault = w.client.Permit(config.ScopeDecide)
	}
	return command.fault != nil
}

// changesCaller reports whether the caller can be another one after the command.
func (c *command) changesCaller() bool {
	return c.description != nil && (c.description.kind == kindAuth || c.description.kind == kindHello || c.description.kind == kindReset)
}

// refuse appends an error, and counts it if it is a refusal.
func (a *caller) refuse(out *writer, err error) {
	a.gate.Refused(err, a.from, a.client())
	reason, refused := access.ReasonOf(err)
	switch {
	case !refused:
		out.failure("ERR", err.Error())
	case errors.Is(err, access.ErrNoCredentials):
		out.failure("NOAUTH", err.Error())
	case reason == access.Unauthenticated:
		out.failure("WRONGPASS", err.Error())
	case reason == access.Forbidden:
		out.failure("NOPERM", err.Error())
	default:
		out.failure("BUSY", err.Error())
	}
}

// authenticate answers AUTH token and AUTH caller token.
func (c *conn) authenticate(out *writer, args [][]byte) bool {
	if err := c.admit(args); err != nil {
		c.access.refuse(out, err)
		return false
	}
	out.status("OK")
	return true
}

// defaultName is the user that most clients name when only a password is set. Others send an empty name.
const defaultName = "default"

// nameError says that a token belongs to another caller than AUTH names.
type nameError struct{}

// Error implements error.
func (nameError) Error() string {
	return "the token is not that of the caller in AUTH: leave the name out, or write the name of its caller"
}

// Is makes a nameError one of wrong credentials.
func (nameError) Is(target error) bool { return target == access.ErrWrongCredentials }

// names reports whether the arguments of AUTH have the name of a client, or none.
func names(args [][]byte, client *access.Client) bool {
	name := string(args[0])
	return len(args) == 1 || name == "" || name == defaultName || name == client.Name()
}

// admit authenticates the connection by a token, which the name of its caller may precede. After an error the
// former caller stays.
func (c *conn) admit(args [][]byte) error {
	if c.access.gate.Auth()&config.AuthToken == 0 {
		return fault("AUTH was called, but this listener takes no tokens: leave it out, or set server.resp.auth")
	}
	former := c.access.session
	if err := c.begin(&access.Credentials{Token: string(args[len(args)-1])}); err != nil {
		return err
	}
	if opened := c.access.session; !names(args, opened.Client()) {
		opened.Close()
		c.access.session = former
		return nameError{}
	}
	former.Close()
	return nil
}

// begin begins a session. When its credentials end, the connection is closed after the commands that have arrived
// are answered.
func (c *conn) begin(by *access.Credentials) error {
	session, err := c.access.gate.Open(by, c.revoke)
	if err == nil {
		c.access.session = session
	}
	return err
}

// revoke ends the connection. It may be called by any goroutine.
func (c *conn) revoke() {
	c.ending.Store(true)
	_ = c.net.SetReadDeadline(time.Unix(1, 0)) // A time in the past.
}

// forget ends the session. One of a certificate begins again.
func (c *conn) forget() {
	c.access.session.Close()
	c.access.session = nil
	c.identify()
}
