package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// Bounds for connections to the upstream.
const (
	// dialTimeout is long for a nearby service, and short for a waiting client.
	dialTimeout = 5 * time.Second
	// idleConnections is how many idle connections are kept. One upstream serves fewer
	// requests concurrently.
	idleConnections = 4096
	// idleUpstream is shorter than the usual idle timeout of servers (60 s and more).
	// Therefore few requests meet a connection that the server is closing.
	idleUpstream = 30 * time.Second
	// continueTimeout bounds the upstream's reply to Expect: 100-continue.
	continueTimeout = time.Second
	// maxUpstreamHeader bounds the header of a response, in bytes.
	maxUpstreamHeader = 1 << 20
	bufferBytes       = 32 << 10
)

// NewTransport returns the transport to one HTTP upstream. It ignores proxy settings in
// the environment, and requests compression only if the client did. timeout bounds the
// time until the upstream starts its response.
func NewTransport(timeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleUpstream,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  timeout,
		ExpectContinueTimeout:  continueTimeout,
		MaxResponseHeaderBytes: maxUpstreamHeader,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// rewrite directs the request to the upstream. The reverse proxy has already removed
// hop-by-hop fields and the client's X-Forwarded fields.
func (s *settings) rewrite(pr *httputil.ProxyRequest) {
	pr.Out.URL.Scheme = s.upstream.Scheme
	pr.Out.URL.Host = s.upstream.Host
	pr.Out.URL.RawQuery = writableQuery(pr.In.URL.RawQuery) // No rule reads the query.
	pr.Out.Host = pr.In.Host
	if len(pr.In.Trailer) > 0 {
		pr.Out.Trailer = pr.In.Trailer // The map must be shared, because it is filled when the body ends.
	}
	for _, name := range forwardedNames {
		if lines := pr.In.Header[name]; len(lines) > 0 {
			pr.Out.Header[name] = lines
		}
	}
	var l http1.List
	l.Load(pr.Out.Header)
	s.describe(&l, pr.In, addressOf(pr.In.RemoteAddr))
	pr.Out.Header = l.Header()
}

// refuseTunnels removes an Upgrade to a protocol that carries requests. Examples
// are HTTP/2 (h2c), and TLS with HTTP inside (RFC 2817). No rule would see the requests on
// the upgraded connection. A server may always ignore an Upgrade, so the request itself is
// still forwarded. The upstream decides about other protocols, such as WebSocket.
func refuseTunnels(l *http1.List) {
	upgrades := l.Lines("Upgrade")
	if len(upgrades) == 0 {
		return
	}
	first, several := upgrades[0], len(upgrades) > 1
	l.Delete("Http2-Settings")
	if several { // The reverse proxy reads only the first; a server may read another.
		l.Delete("Upgrade")
		return
	}
	for option := range strings.SplitSeq(first, ",") {
		if !harmless(strings.Trim(option, " \t")) {
			l.Delete("Upgrade")
			return
		}
	}
}

// harmless reports whether an Upgrade option is a protocol, with or without version, that
// carries no requests. Invalid names are not harmless: a server may still accept them.
func harmless(option string) bool {
	for i := range len(option) {
		switch c := option[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~/", c) >= 0: // RFC 9110, section 5.6.2.
		default:
			return false
		}
	}
	name, _, _ := strings.Cut(option, "/")
	return name != "" && !slices.ContainsFunc(tunnelNames, func(tunnel string) bool { return strings.EqualFold(tunnel, name) })
}

// tunnelNames are the protocols that carry requests, without their version.
var tunnelNames = []string{"h2c", "h2", "h3", "HTTP", "TLS"}

// buffers implements httputil.BufferPool for bodies.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[bufferBytes]byte); ok {
		return buf[:]
	}
	return make([]byte, bufferBytes)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(buf []byte) {
	if cap(buf) >= bufferBytes {
		b.pool.Put((*[bufferBytes]byte)(buf[:bufferBytes]))
	}
}

// received checks the header of a final or upgrading response.
func received(resp *http.Response) error {
	hidePrivate(resp)
	stopBody(resp)
	return writableStatus(resp.StatusCode)
}

// writableStatus returns an error for a status that net/http accepts from an upstream but
// panics on when it writes it.
func writableStatus(status int) error {
	if status < 100 || status > 999 {
		return fmt.Errorf("proxy: the upstream responded with status %d, which is outside 100 to 999", status)
	}
	return nil
}

// statusClientGone marks a disconnected client in counters and the access log. Other
// proxies log the same number.
const statusClientGone = 499

// statusDropped marks a request that a rule has dropped, as nginx does.
const statusDropped = 444

// failed responds when the upstream did not. It separates failures that the client
// caused, which are not upstream failures.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	entryOf(w).unanswered()
	x, ok := w.(*exchange)
	if !ok {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	failure := bodyFine
	if x.body != nil {
		failure = x.body.failureOf(r.Context().Err() != nil && !x.stopped())
	}
	switch {
	case failure == bodyUpstreamStalled:
		err = errUpstreamStalled // The stall timer canceled the request.
	case failure == bodyStalled: // The server also cancels the request in this case.
		x.end = guard.BrokenRequest
		x.plain(http.StatusRequestTimeout, "Request Timeout", "The request's body did not arrive in time.")
		return
	case x.stopped():
		x.end = guard.Stopped
		x.Header()["Retry-After"] = spreadTable[0]
		x.plain(http.StatusServiceUnavailable, "Service Unavailable", "The request was stopped before the service responded.")
		return
	case r.Context().Err() != nil:
		x.gone()
		return
	case failure == bodyFolded:
		x.end = guard.BrokenRequest
		r.Header = x.fields.Header()
		x.decision.Reject(x, r, badFold)
		return
	case failure == bodyBroken:
		x.end = guard.BrokenRequest
		r.Header = x.fields.Header()
		x.decision.Reject(x, r, "The request's body ended early.")
		return
	}
	x.end = guard.Failed
	kind := classify(err)
	p.traffic.UpstreamFailed(kind)
	x.settings.failures.log(p.log, x, r, err)
	if kind == report.UpstreamTimeout {
		x.plain(http.StatusGatewayTimeout, "Gateway Timeout", "The upstream did not respond in time.")
		return
	}
	x.plain(http.StatusBadGateway, "Bad Gateway", gatewayDetailsTable[kind])
}

// gatewayDetailsTable has the 502 texts, which do not reveal the upstream's address.
var gatewayDetailsTable = map[report.UpstreamError]string{
	report.UpstreamRefused: "The upstream does not accept connections.",
	report.UpstreamReset:   "The upstream closed the connection before it responded.",
	report.UpstreamOther:   "The upstream's response could not be read.",
}

func classify(err error) report.UpstreamError {
	var timeout net.Error
	var operation *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errUpstreamStalled), errors.As(err, &timeout) && timeout.Timeout():
		return report.UpstreamTimeout
	case errors.As(err, &operation) && operation.Op == "dial":
		return report.UpstreamRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return report.UpstreamReset
	default:
		return report.UpstreamOther
	}
}
