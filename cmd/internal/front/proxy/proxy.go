package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/http1/client"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/ahead"
	"github.com/headgate/headgate/internal/cors"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
)

// Config configures a Proxy.
type Config struct {
	// Guard decides each request.
	Guard *guard.Guard
	// Upstream has the scheme and host of the service, and no path.
	Upstream *url.URL
	// Transport sends requests to the upstream; see NewTransport.
	Transport http.RoundTripper
	// Traffic receives the counts.
	Traffic *report.Traffic
	// Style is the form of the fields that tell a client its limit.
	Style fields.Style
	// CORS says which pages of other origins may read the proxy's own answers; nil for none.
	CORS *cors.Policy
	// BodyIdle is how long a client may pause while it sends a body or reads a response; 0
	// means no bound.
	BodyIdle time.Duration
	// Fast serves new connections on the fast path, as far as their requests are in its
	// subset.
	Fast bool
	// Certificates says that clients may present certificates, which rules can count by.
	Certificates bool
	// Client sends the requests that it can send, in place of Transport; nil for none.
	Client *client.Client
	// Instance names this instance in the field Headgate-Decision of refusals; "" sends no field.
	Instance string
	// Log receives the proxy's own errors.
	Log *slog.Logger
}

// Proxy is the handler of headgate proxy.
type Proxy struct {
	guard   *guard.Guard
	traffic *report.Traffic
	log     *slog.Logger
	pool    sync.Pool
	tickets sync.Pool // of *guard.Ticket
	buffers buffers
	bodies  ahead.Pool // for what is read before decisions
	current atomic.Pointer[settings]
}

// settings are what a reload can change.
type settings struct {
	proxy    *Proxy
	upstream *url.URL
	host     string // used for a request without a host
	reverse  *httputil.ReverseProxy
	style    fields.Style
	cors     *cors.Policy // nil without one
	bodyIdle time.Duration
	fast     bool
	client   *client.Client // nil without one
	instance string
	failures failureLog
}

// New returns a Proxy, or an error that names the invalid setting.
func New(c Config) (*Proxy, error) {
	if c.Guard == nil || c.Traffic == nil || c.Log == nil {
		return nil, errors.New("proxy: Config needs Guard, Traffic and Log: set all three")
	}
	front := guard.Front{Name: "the proxy", Bytes: true, Supplies: rule.SupplyHeaders | rule.SupplyCookies | rule.SupplyQueries |
		rule.SupplyBodies}
	if c.Certificates {
		front.Supplies |= rule.SupplySubjects
	}
	if err := c.Guard.Attach(front); err != nil {
		return nil, err //nolint:wrapcheck // The error names the rule and the front.
	}
	p := &Proxy{guard: c.Guard, traffic: c.Traffic, log: c.Log}
	commit, err := p.Prepare(c)
	if err != nil {
		return nil, err
	}
	commit()
	return p, nil
}

// Prepare checks the upstream, transport, style, CORS and body bound of c. commit applies them
// to all later requests and cannot fail. Requests in flight keep the old settings. Guard,
// Traffic and Log of c are ignored.
func (p *Proxy) Prepare(c Config) (commit func(), err error) {
	u := c.Upstream
	switch {
	case c.Transport == nil:
		return nil, errors.New("proxy: Config.Transport is nil: set it, for example to NewTransport(timeout)")
	case u == nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("proxy: upstream %v is not an address: write one like http://127.0.0.1:9000", u)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil:
		return nil, fmt.Errorf(
			"proxy: upstream %s has more than scheme and host: write %s://%s, because rules match the path that the service receives",
			u.Redacted(), u.Scheme, u.Host)
	}
	s := &settings{
		proxy: p, upstream: u, host: u.Host, style: c.Style, cors: c.CORS, bodyIdle: c.BodyIdle, fast: c.Fast, client: c.Client,
		instance: c.Instance,
	}
	if canonical, ok := canonicalHost(u.Host); ok {
		s.host = canonical
	}
	s.reverse = &httputil.ReverseProxy{
		Rewrite:        s.rewrite,
		Transport:      c.Transport,
		BufferPool:     &p.buffers,
		ErrorHandler:   p.failed,
		ModifyResponse: received,
		// The level is debug because disconnected clients and failed upstreams, which the
		// messages report, are counted already.
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	return func() { p.current.Store(s) }, nil
}

// ServeHTTP handles a request in five steps: identify, match, decide, act, report.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.take(w, r)
	defer p.done(r.Context(), x)
	if r.Method == http.MethodConnect {
		x.plain(http.StatusMethodNotAllowed, "Method Not Allowed", "This gateway serves one service and does not open tunnels.")
		return
	}
	if problem := malformed(r, x.fields, x.settings.host); problem != "" {
		if x.stream {
			x.Header()["Connection"] = closeTable // Later bytes on the connection may be ambiguous too.
		}
		r.Header = x.fields.Header()
		x.decision.Reject(x, r, problem)
		return
	}
	if x.fields.Has("Connection") {
		p.dropNominated(x.fields)
	}
	began := time.Now()
	err := x.decision.AdmitFields(p.guard, r, x.fields)
	took := time.Since(began)
	p.traffic.Decision.Observe(took - x.awaited)
	decided := began.Add(took)
	if err != nil && x.body != nil && x.body.unread(err) {
		p.failed(x, r, err)
		return
	}
	if err != nil {
		if x.decision.Fail(x, err) {
			p.log.Error("could not decide a request", "error", err)
		}
		return
	}
	verdict := x.decision.Answer.Verdict
	if verdict == headgate.Wait {
		verdict, err = p.wait(r.Context(), x)
		decided = time.Now()
	}
	entryOf(x).decided(&x.decision.Request, &x.decision.Answer)
	switch {
	case err != nil:
		x.decision.Done(guard.ClientLeft)
		x.gone()
	case verdict == headgate.Deny && x.decision.Answer.Drops():
		x.decision.Done(guard.Refused)
		x.drop()
	case verdict == headgate.Deny:
		x.decision.Refuse(x)
		x.decision.Done(guard.Refused)
	default:
		x.forwarded = true
		x.place.startService(decided)
		forward := x.detach(x.decision.Mark(p.guard, r, x.fields))
		x.decision.Request.Body = nil // Forwarding gives the memory of its fields back.
		p.forward(x, forward)
	}
	x.finished = true
}

// wait delays a request until it may go or is refused. An error means that the client
// disconnected first; the guard has then returned the request's units.
func (p *Proxy) wait(ctx context.Context, x *exchange) (headgate.Verdict, error) {
	p.traffic.Waiting.Add(1)
	defer p.traffic.Waiting.Add(-1)
	verdict, err := x.decision.Wait(ctx)
	if err != nil && err != ctx.Err() { //nolint:errorlint // because a joined error has more than ctx.Err().
		p.log.Warn("could not return the units of a canceled request", "error", err)
	}
	return verdict, err
}

func (p *Proxy) forward(x *exchange, r *http.Request) {
	if x.sends {
		x.openBody(r)
		if x.ends {
			x.body.ticket = x.ticket
			release := x.body.stopWith(r.Context())
			defer release()
		}
		r.Body = x.body
		var stop func()
		r, stop = x.body.watch(r)
		defer stop()
	}
	refuseTunnels(x.fields)
	entryOf(x).forwarded()
	if x.settings.sends(r, x.fields) {
		x.send(r)
		return
	}
	r.Header = x.fields.Header()
	x.settings.reverse.ServeHTTP(x, r)
}

// plain responds with a problem that needs no details of a decision.
func (x *exchange) plain(status int, title, detail string) {
	x.decision.Problem(x, status, title, detail)
}

// drop closes the connection, or the stream of HTTP/2, without an answer. The counters and the access log have statusDropped.
func (x *exchange) drop() {
	x.status, x.end = statusDropped, guard.Refused
	if e := entryOf(x); e != nil && e.line.Status == 0 {
		e.answered(statusDropped)
	}
	panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http has no other way to abort.
}

// gone aborts an exchange whose client disconnected or whose request was canceled by the
// server. The panic keeps the status from the client. Only the counters and the access
// log use the status.
func (x *exchange) gone() {
	if x.status == 0 {
		x.status, x.end = statusClientGone, guard.ClientLeft
		entryOf(x).abandoned()
	}
	panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http has no other way to abort.
}
