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
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/fields"
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
	Style fields.Style
	// BodyIdle is how long a client may stop in the middle of a body, its own or the
	// answer's; 0 is for ever.
	BodyIdle time.Duration
	// Log gets what goes wrong in ourselves.
	Log *slog.Logger
}

// Proxy is the handler of headgate proxy.
type Proxy struct {
	guard   *guard.Guard
	traffic *report.Traffic
	log     *slog.Logger
	pool    sync.Pool
	current atomic.Pointer[settings]
}

// settings are what a reload changes.
type settings struct {
	proxy    *Proxy
	upstream *url.URL
	host     string // of a request that has none
	reverse  *httputil.ReverseProxy
	style    fields.Style
	bodyIdle time.Duration
	failures failureLog
}

// New makes a Proxy. The error says which setting does not fit.
func New(c Config) (*Proxy, error) {
	if c.Guard == nil || c.Traffic == nil || c.Log == nil {
		return nil, errors.New("proxy: Guard, Traffic and Log are all needed")
	}
	p := &Proxy{guard: c.Guard, traffic: c.Traffic, log: c.Log}
	commit, err := p.Prepare(c)
	if err != nil {
		return nil, err
	}
	commit()
	return p, nil
}

// Prepare prepares upstream, style and bounds of c: commit makes them those of the
// proxy from the next request on, and cannot fail. Requests under way end as they began.
// Guard, Traffic and Log stay.
func (p *Proxy) Prepare(c Config) (commit func(), err error) {
	u := c.Upstream
	switch {
	case c.Transport == nil:
		return nil, errors.New("proxy: a Transport is needed")
	case u == nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("proxy: upstream %v is no address: write one like http://127.0.0.1:9000", u)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil:
		return nil, fmt.Errorf(
			"proxy: upstream %s has more than scheme and host: write %s://%s, since rules match the path that the service sees",
			u.Redacted(), u.Scheme, u.Host)
	}
	s := &settings{proxy: p, upstream: u, host: u.Host, style: c.Style, bodyIdle: c.BodyIdle}
	if canonical, ok := canonicalHost(u.Host); ok {
		s.host = canonical
	}
	s.reverse = &httputil.ReverseProxy{
		Rewrite:      s.rewrite,
		Transport:    c.Transport,
		BufferPool:   &buffers{},
		ErrorHandler: p.failed,
		// A status that net/http cannot write ends in a panic.
		ModifyResponse: writableStatus,
		// It tells of clients that left and of upstreams that broke off: both are counted.
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	return func() { p.current.Store(s) }, nil
}

// ServeHTTP takes a request its whole way: identify, match, decide, act, report.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := p.take(w, r)
	defer p.done(x)
	if r.Method == http.MethodConnect {
		x.plain(http.StatusMethodNotAllowed, "Method Not Allowed", "This is a gateway to one service: it opens no tunnels.")
		return
	}
	if problem := malformed(r, x.settings.host); problem != "" {
		if x.stream {
			x.Header()["Connection"] = closeTable // What follows may be meant in another way too.
		}
		x.asked.Reject(x, r, problem)
		return
	}
	if len(r.Header["Connection"]) > 0 {
		p.dropNominated(r.Header)
	}
	began := time.Now()
	err := x.asked.Admit(p.guard, r)
	p.traffic.Decision.Observe(time.Since(began))
	if err != nil {
		if x.asked.Fail(x, err) {
			p.log.Error("a request could not be decided", "error", err)
		}
		return
	}
	verdict := x.asked.Answer.Verdict
	if verdict == headgate.Wait {
		verdict, err = p.wait(r.Context(), x)
	}
	entryOf(x).decided(&x.asked.Answer)
	switch {
	case err != nil:
		x.asked.Done(guard.ClientLeft)
		x.gone()
	case verdict == headgate.Deny:
		x.asked.Refuse(x)
		x.asked.Done(guard.Refused)
	default:
		p.forward(x, x.detach(x.asked.Forward(p.guard, r)))
	}
	x.finished = true
}

// wait holds a request until it may go or is refused. The error says that the client
// went away first; the guard has then returned what the request took.
func (p *Proxy) wait(ctx context.Context, x *exchange) (headgate.Verdict, error) {
	p.traffic.Waiting.Add(1)
	defer p.traffic.Waiting.Add(-1)
	verdict, err := x.asked.Wait(ctx)
	if err != nil && err != ctx.Err() { //nolint:errorlint // because it asks whether there is more to it than that.
		p.log.Warn("a place in a queue could not be given back", "error", err)
	}
	return verdict, err
}

func (p *Proxy) forward(x *exchange, r *http.Request) {
	if x.sends {
		x.body = &body{
			ReadCloser: r.Body, request: r, idle: x.settings.bodyIdle, stream: x.stream, place: x.place,
			trailer: r.Trailer, allowed: p.trailerNames(r.Trailer, entryOf(x).requestIDName()),
		}
		x.body.filterTrailer() // What is announced, before what is sent.
		if from, ok := x.ResponseWriter.(connection); ok {
			x.body.from = from
			// Else a server of HTTP/1 throws away what it has not read of the body when the
			// answer begins, while it is still being sent to the upstream.
			_ = from.EnableFullDuplex()
		}
		r.Body = x.body
		var stop func()
		r, stop = x.body.watch(r)
		defer stop()
	}
	refuseTunnels(r.Header)
	entryOf(x).forwarded()
	x.settings.reverse.ServeHTTP(x, r)
}

// plain answers with a problem that the status says all of.
func (x *exchange) plain(status int, title, detail string) {
	x.asked.Problem(x, status, title, detail)
}

// gone ends an exchange whose client went away, or whose server broke it off: the
// client must not take the status, which is for our counters and log, for an answer.
func (x *exchange) gone() {
	if x.status == 0 {
		x.status, x.end = statusClientGone, guard.ClientLeft
		entryOf(x).abandoned()
	}
	panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http knows no other way.
}
