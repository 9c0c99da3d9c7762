package grpclimit

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// errAuthority refuses a call whose host rules cannot judge.
var errAuthority = status.Error(codes.InvalidArgument, "The call's :authority is not a valid host name.")

// fill makes the request that the rules see of a call, and copies nothing. The error
// is the status of a call that the service may read in another way than the rules.
func fill(ctx context.Context, req *headgate.Request, method string, sent incoming, needs rule.Needs) error {
	*req = headgate.Request{Method: http.MethodPost, Path: method, Header: sent}
	if authority := sent[":authority"]; len(authority) > 0 {
		var ok bool
		if req.Host, _, ok = rule.ParseHost(strings.Trim(authority[0], " \t")); !ok && needs&rule.NeedHost != 0 {
			return errAuthority
		}
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	req.IP = addressOf(p.Addr)
	if needs&rule.NeedSubject != 0 {
		req.Subject = subjectOf(p.AuthInfo)
	}
	return nil
}

// addressOf gives the address of a peer. Behind net/http a peer is a text; what has
// no address, as a unix socket, gives none.
func addressOf(at net.Addr) netip.Addr {
	var found netip.AddrPort
	switch at := at.(type) {
	case nil:
	case *net.TCPAddr:
		found = at.AddrPort()
	default:
		if strings.HasPrefix(at.Network(), "tcp") {
			found, _ = netip.ParseAddrPort(at.String()) // Else it has none.
		}
	}
	return found.Addr().Unmap().WithZone("")
}

// subjectOf gives the subject of the certificate that TLS has verified.
func subjectOf(info credentials.AuthInfo) string {
	secure, ok := info.(credentials.TLSInfo)
	if !ok || len(secure.State.VerifiedChains) == 0 || len(secure.State.VerifiedChains[0]) == 0 {
		return ""
	}
	return secure.State.VerifiedChains[0][0].Subject.String()
}

// origin finds the metadata of calls where they are. metadata.FromIncomingContext
// copies all that a client sent, for each call, and a lookup by
// metadata.ValueFromIncomingContext searches all of it when a name is not there:
// it is the client who says how much that is. The context gives the map itself to
// who has the key, and the key is what the package asks a context for.
type origin struct{ key any }

// asked is a context that remembers what it was asked for.
type asked struct {
	context.Context //nolint:containedctx // It is a context.

	key any
}

// Value implements context.Context.
func (a *asked) Value(key any) any {
	a.key = key
	return nil
}

func newOrigin() origin {
	a := &asked{Context: context.Background()}
	_, _ = metadata.FromIncomingContext(a)
	return origin{a.key}
}

// metadata gives what came with a call. Nobody may change it: the context of the
// call, and all that are made of it, share it.
func (o origin) metadata(ctx context.Context) incoming {
	if md, ok := ctx.Value(o.key).(metadata.MD); ok {
		return incoming(md)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return incoming(md)
}

// incoming is the metadata that came with a call, under lower-case names.
type incoming metadata.MD

// FromGRPC says that a gRPC server has routed the call: its method is what the path says.
func (incoming) FromGRPC() {}

// Lookup implements headgate.Values. Blanks around a value are no part of it, though
// HTTP/2 brings them.
func (m incoming) Lookup(name string) (string, bool) {
	if lines := m.Lines(name); len(lines) > 0 {
		return strings.Trim(lines[0], " \t"), true
	}
	return "", false
}

// Lines implements headgate.Lines. There is no binary metadata: a client could put
// any bytes into it.
func (m incoming) Lines(name string) []string {
	const binary = "-bin"
	if from := len(name) - len(binary); from >= 0 && strings.EqualFold(name[from:], binary) {
		return nil
	}
	return m.values(name)
}

// values gives all values of a name in any case.
func (m incoming) values(name string) []string {
	var array [128]byte // Longer names are an allocation.
	key := array[:0]
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		key = append(key, c)
	}
	return m[string(key)]
}
