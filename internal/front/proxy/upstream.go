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

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/report"
)

// Bounds of the connections to the upstream.
const (
	// dialTimeout is long for a neighbour, and short for a client that waits.
	dialTimeout = 5 * time.Second
	// idleConnections is how many connections are kept for the next request: more
	// than the requests that one upstream serves at once.
	idleConnections = 4096
	// idleUpstream is below the time after which servers commonly close an idle
	// connection, 60 s and more, so that few requests meet one that is closing.
	idleUpstream = 30 * time.Second
	// continueTimeout is how long the upstream may think about Expect: 100-continue.
	continueTimeout = time.Second
	// maxUpstreamHeader bounds the fields of an answer.
	maxUpstreamHeader = 1 << 20
	bufferBytes       = 32 << 10
)

// NewTransport gives the transport to one upstream of HTTP. It takes no proxy from
// the environment and does not ask for compression that the client did not ask for.
// timeout bounds how long the upstream may take to begin its answer.
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

// rewrite sends the request to the upstream. The reverse proxy has removed
// hop-by-hop fields and what the client claims of proxies before us.
func (s *settings) rewrite(pr *httputil.ProxyRequest) {
	pr.Out.URL.Scheme = s.upstream.Scheme
	pr.Out.URL.Host = s.upstream.Host
	pr.Out.URL.RawQuery = writableQuery(pr.In.URL.RawQuery) // No rule looks at it.
	pr.Out.Host = pr.In.Host
	if len(pr.In.Trailer) > 0 {
		pr.Out.Trailer = pr.In.Trailer // It is filled when the body ends: a copy would stay empty.
	}
	id := s.proxy.guard.Identity()
	setForwarded(pr, id.Trusts)
	dropImpostors(pr.Out.Header, peer(pr.In.RemoteAddr), id, s.proxy.guard.Reads().Headers)
}

// refuseTunnels removes the wish to go on in a protocol that carries requests. An
// upstream that agreed to HTTP/2 (h2c), or to TLS with HTTP in it (RFC 2817), would
// take any number of requests through that connection, and no rule would see them.
// A server may always disregard the wish, so that the request itself goes on.
// Every other protocol, WebSocket among them, is the upstream's affair.
func refuseTunnels(h http.Header) {
	wishes, asked := h["Upgrade"]
	if !asked {
		return
	}
	delete(h, "Http2-Settings")
	if len(wishes) != 1 { // The reverse proxy looks at the first, and a server may at another.
		delete(h, "Upgrade")
		return
	}
	for wish := range strings.SplitSeq(wishes[0], ",") {
		if !harmless(strings.Trim(wish, " \t")) {
			delete(h, "Upgrade")
			return
		}
	}
}

// harmless tells whether a wish is the name of a protocol, with or without its
// version, that carries no requests. What is no name, a server might take for one.
func harmless(wish string) bool {
	for i := range len(wish) {
		switch c := wish[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~/", c) >= 0: // As RFC 9110 has it, section 5.6.2.
		default:
			return false
		}
	}
	name, _, _ := strings.Cut(wish, "/")
	return name != "" && !slices.ContainsFunc(tunnelNames, func(tunnel string) bool { return strings.EqualFold(tunnel, name) })
}

// tunnelNames are the protocols that carry requests, without their version.
var tunnelNames = []string{"h2c", "h2", "h3", "HTTP", "TLS"}

// buffers is the httputil.BufferPool of bodies.
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

// writableStatus refuses a status that net/http reads from an upstream and panics to write.
func writableStatus(resp *http.Response) error {
	if resp.StatusCode < 100 || resp.StatusCode > 999 {
		return fmt.Errorf("proxy: the upstream's answer has the status %d, which is not 100 to 999", resp.StatusCode)
	}
	return nil
}

// statusClientGone marks, in our counters alone, that the client went away. It is
// the number that other proxies log for it.
const statusClientGone = 499

// failed answers for an upstream that did not. What the client itself broke off
// is told apart: it is no failure of the upstream.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	entryOf(w).unanswered()
	x, ok := w.(*exchange)
	if !ok {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	failure := bodyFine
	if x.body != nil {
		failure = x.body.failure.Load()
	}
	switch {
	case failure == bodyUntaken:
		err = errUntaken // The cancellation is ours.
	case failure == bodyStalled: // The server then cancels the request too.
		x.end = guard.BrokenRequest
		x.plain(http.StatusRequestTimeout, "Request Timeout", "The request's body did not arrive in time.")
		return
	case x.stopped():
		x.end = guard.Stopped
		x.plain(http.StatusServiceUnavailable, "Service Unavailable", "The request was stopped before the service answered.")
		return
	case r.Context().Err() != nil:
		x.gone()
		return
	case failure == bodyFolded:
		x.end = guard.BrokenRequest
		x.asked.Reject(x, r, badFold)
		return
	case failure == bodyBroken:
		x.end = guard.BrokenRequest
		x.asked.Reject(x, r, "The request's body ended early.")
		return
	}
	x.end = guard.Failed
	kind := classify(err)
	p.traffic.UpstreamFailed(kind)
	x.settings.failures.log(p.log, x, r, err)
	if kind == report.UpstreamTimeout {
		x.plain(http.StatusGatewayTimeout, "Gateway Timeout", "The upstream did not answer in time.")
		return
	}
	x.plain(http.StatusBadGateway, "Bad Gateway", gatewayDetailsTable[kind])
}

// gatewayDetailsTable holds the texts of 502. They do not say where the upstream is.
var gatewayDetailsTable = map[report.UpstreamError]string{
	report.UpstreamRefused: "The upstream does not take connections.",
	report.UpstreamReset:   "The upstream ended the connection before it answered.",
	report.UpstreamOther:   "The upstream's answer could not be read.",
}

func classify(err error) report.UpstreamError {
	var timeout net.Error
	var operation *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errUntaken), errors.As(err, &timeout) && timeout.Timeout():
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
