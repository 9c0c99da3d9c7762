package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/report"
)

// Config says what a Proxy guards, and how.
type Config struct {
	// Guard decides.
	Guard *guard.Guard
	// Upstream is scheme and host of the service; it has no path.
	Upstream *url.URL
	// Transport reaches the upstream, as NewTransport makes it.
	Transport http.RoundTripper
	// Traffic is counted into.
	Traffic *report.Traffic
	// Style is the form of the fields that tell a client of its limit.
	Style Style
	// BodyIdle is how long a client may stop in the middle of a body, its own or the
	// answer's; 0 is for ever.
	BodyIdle time.Duration
	// Log gets what goes wrong in ourselves.
	Log *slog.Logger
}

// Proxy is the handler of headgate proxy.
type Proxy struct {
	guard    *guard.Guard
	upstream *url.URL
	reverse  *httputil.ReverseProxy
	traffic  *report.Traffic
	style    Style
	bodyIdle time.Duration
	log      *slog.Logger
	pool     sync.Pool
}

var (
	problemContentTypeTable = []string{"application/problem+json"}
	noStoreTable            = []string{"no-store"}
)

// New makes a Proxy. The error says which setting does not fit.
func New(c Config) (*Proxy, error) {
	u := c.Upstream
	switch {
	case c.Guard == nil || c.Transport == nil || c.Traffic == nil || c.Log == nil:
		return nil, errors.New("proxy: Guard, Transport, Traffic and Log are all needed")
	case u == nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("proxy: upstream %v is no address: write one like http://127.0.0.1:9000", u)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil:
		return nil, fmt.Errorf(
			"proxy: upstream %s has more than scheme and host: write %s://%s, since rules match the path that the service sees",
			u.Redacted(), u.Scheme, u.Host)
	}
	p := &Proxy{
		guard: c.Guard, upstream: u, traffic: c.Traffic, style: c.Style, bodyIdle: c.BodyIdle, log: c.Log,
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:      p.rewrite,
		Transport:    c.Transport,
		BufferPool:   &buffers{},
		ErrorHandler: p.failed,
		// It tells of clients that left and of upstreams that broke off: both are counted.
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return p, nil
}

// ServeHTTP takes a request its whole way: identify, match, decide, act, report.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.take(w, r)
	defer p.done(x)
	if r.Method == http.MethodConnect {
		x.plain(http.StatusMethodNotAllowed, "Method Not Allowed", "This is a gateway to one service: it opens no tunnels.")
		return
	}
	forward, ok := fill(&x.request, r)
	if !ok {
		x.plain(http.StatusBadRequest, "Bad Request", "The path of the request can be read in more than one way.")
		return
	}
	began := time.Now()
	err := p.guard.Decide(r.Context(), &x.request, &x.answer)
	p.traffic.Decision.Observe(time.Since(began))
	if err != nil {
		p.log.Error("a request could not be decided", "error", err)
		x.plain(http.StatusInternalServerError, "Internal Server Error", "The request could not be decided.")
		return
	}
	x.decided = true
	switch x.answer.Verdict {
	case headgate.Allow:
	case headgate.Wait:
		if !p.wait(r.Context(), x) {
			x.gone()
			return
		}
	default:
		x.refuse()
		return
	}
	p.forward(x, forward)
}

// wait holds a request until its departure. It gives false, and the request's
// place back, when the client goes away first.
func (p *Proxy) wait(ctx context.Context, x *exchange) bool {
	p.traffic.Waiting.Add(1)
	defer p.traffic.Waiting.Add(-1)
	timer := time.NewTimer(x.answer.RetryAfter())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		// The request is over, and giving back what it took is not.
		if err := p.guard.Cancel(context.WithoutCancel(ctx), &x.answer); err != nil {
			p.log.Warn("a place in a queue could not be given back", "error", err)
		}
		return false
	}
}

func (p *Proxy) forward(x *exchange, r *http.Request) {
	if r.Body != nil && r.ContentLength != 0 {
		x.body = &body{ReadCloser: r.Body, idle: p.bodyIdle}
		if from, ok := x.ResponseWriter.(connection); ok {
			x.body.from = from
			// Else a server of HTTP/1 throws away what it has not read of the body when the
			// answer begins, while it is still being sent to the upstream.
			_ = from.EnableFullDuplex()
		}
		r.Body = x.body
	}
	refuseTunnels(r.Header)
	p.reverse.ServeHTTP(x, r)
}

// refuse answers a request that its rules deny.
func (x *exchange) refuse() {
	document := refusal(&x.answer, x.names[:0])
	x.names = document.violated
	if d := &x.answer.Closest().Decision; d.Reason != headgate.Never {
		x.Header()[fieldRetryAfter] = []string{strconv.FormatInt(retryAfter(d), 10)}
	}
	x.problem = document.write(x, x.problem)
}

// plain answers with a problem that the status says all of.
func (x *exchange) plain(status int, title, detail string) {
	document := problem{kind: typeBlank, title: title, status: status, detail: detail}
	x.problem = document.write(x, x.problem)
}

// gone ends an exchange whose client went away. Nobody reads the status.
func (x *exchange) gone() {
	if x.status == 0 {
		x.WriteHeader(statusClientGone)
	}
}
