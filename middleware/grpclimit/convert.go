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

// errAuthority refuses a call whose host rules cannot match.
var errAuthority = status.Error(codes.InvalidArgument, "The call's :authority is not a valid host name.")

// fill sets req to the request that rules see of a call, without copying the metadata. The
// error is the status of a call with an ambiguous host.
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

// addressOf returns the address of a peer. Behind net/http the address is a string. A peer
// without an IP address, such as a unix socket, gives the zero Addr.
func addressOf(at net.Addr) netip.Addr {
	var found netip.AddrPort
	switch at := at.(type) {
	case nil:
	case *net.TCPAddr:
		found = at.AddrPort()
	default:
		if strings.HasPrefix(at.Network(), "tcp") {
			found, _ = netip.ParseAddrPort(at.String()) // An error leaves found invalid.
		}
	}
	return found.Addr().Unmap().WithZone("")
}

// subjectOf returns the subject of a certificate that TLS has verified, or "".
func subjectOf(info credentials.AuthInfo) string {
	secure, ok := info.(credentials.TLSInfo)
	if !ok || len(secure.State.VerifiedChains) == 0 || len(secure.State.VerifiedChains[0]) == 0 {
		return ""
	}
	return secure.State.VerifiedChains[0][0].Subject.String()
}

// origin finds the incoming metadata of calls without a copy. metadata.FromIncomingContext
// copies all metadata of each call, and metadata.ValueFromIncomingContext searches all of
// it for a missing name. The client controls that cost. A context returns the map itself
// for the package's private key. newOrigin learns the key by calling the package with a
// context that records it.
type origin struct{ key any }

// keyRecorder is a context that records the key of the last Value call.
type keyRecorder struct {
	context.Context //nolint:containedctx // because the type is a context.

	key any
}

// Value implements context.Context.
func (a *keyRecorder) Value(key any) any {
	a.key = key
	return nil
}

func newOrigin() origin {
	a := &keyRecorder{Context: context.Background()}
	_, _ = metadata.FromIncomingContext(a)
	return origin{a.key}
}

// metadata returns a call's incoming metadata. Callers must not modify it, because all
// contexts of the call share it.
func (o origin) metadata(ctx context.Context) incoming {
	if md, ok := ctx.Value(o.key).(metadata.MD); ok {
		return incoming(md)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return incoming(md)
}

// incoming is a call's incoming metadata, with lower-case names.
type incoming metadata.MD

// FromGRPC marks the values as those of a gRPC call. The server has already routed the
// call, so the path is the method.
func (incoming) FromGRPC() {}

// Lookup implements headgate.Values. It trims blanks around a value, which HTTP/2 can
// deliver.
func (m incoming) Lookup(name string) (string, bool) {
	if lines := m.Lines(name); len(lines) > 0 {
		return strings.Trim(lines[0], " \t"), true
	}
	return "", false
}

// Lines implements headgate.Lines. It hides binary metadata, in which a client could send
// any bytes.
func (m incoming) Lines(name string) []string {
	const binary = "-bin"
	if from := len(name) - len(binary); from >= 0 && strings.EqualFold(name[from:], binary) {
		return nil
	}
	return m.values(name)
}

// values returns all values of a name, ignoring case.
func (m incoming) values(name string) []string {
	var array [128]byte // Longer names need an allocation.
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
