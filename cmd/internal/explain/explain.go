package explain

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/store/memory"
)

// maxTimes bounds Flags.Times. A million requests take some seconds.
const maxTimes = 1_000_000

// Request is a request to explain, and how often it is made.
type Request struct {
	http  *http.Request
	times int
}

// Explain decides the request, with empty counters, and writes the result. All requests
// arrive at now: no limit refills between them, and no request waits.
func (r *Request) Explain(out io.Writer, c *config.Config, now time.Time) error {
	g, err := frozenGuard(c.InMemory(), now)
	if err != nil {
		return err
	}
	e := &explanation{Reading: Reading{Config: c, Guard: g, Now: now}, sent: r.http}
	e.Request, e.Answer = &e.exchange.Request, &e.exchange.Answer
	e.exchange.ResolvePath, e.exchange.OneValue, e.exchange.CORS = true, true, c.CORS // The proxy does the same.
	ctx := r.http.Context()
	for n := 1; n <= r.times && ctx.Err() == nil; n++ {
		if err := e.decide(n); err != nil {
			return err
		}
	}
	return errors.Join(ctx.Err(), e.write(out))
}

// frozenGuard returns a guard for the configuration. Its store's clock stands still at now, and
// its fair share's clock stands still at the start of the cycle.
func frozenGuard(c *config.Config, now time.Time) (*guard.Guard, error) {
	at, shared := headgate.Instant(now.UnixNano()), cycleStart(c, now)
	return NewGuard(c, func() headgate.Instant { return at }, func(g *guard.Config) { g.Clock = func() headgate.Instant { return shared } })
}

// NewGuard returns a guard for a configuration whose rules count in memory, with a clock for its store, and another for fair share and
// the edges of calendar windows if adapt sets it. Leases never come, so that the fallbacks of their rules decide.
func NewGuard(c *config.Config, clock func() headgate.Instant, adapt func(*guard.Config)) (*guard.Guard, error) {
	settings := c.StoreConfig()
	settings.Clock = clock
	store, err := memory.New(settings)
	if err != nil {
		return nil, err
	}
	described, err := open.GuardConfig(c, store)
	if err != nil {
		return nil, err
	}
	described.WithoutState = false // The file alone is explained.
	described.Clock = clock
	if described.Leases, err = noLeases(); err != nil {
		return nil, err
	}
	adapt(&described)
	return guard.New(described)
}

// explanation has the decision of the last request, and the results of the requests before.
type explanation struct {
	Reading

	sent     *http.Request
	exchange httplimit.Exchange
	response answer
	// failed is the error of an invalid request that could not be decided.
	failed  error
	forward *http.Request // nil when the request does not reach the service
	runs    []outcomes
}

// decide decides the request for the nth time.
func (e *explanation) decide(n int) error {
	x := &e.exchange
	e.response, e.forward = answer{}, nil
	if e.failed = x.Admit(e.Guard, e.sent); e.failed != nil {
		if x.Fail(&e.response, e.failed) {
			return fmt.Errorf("check: the request could not be decided: %w", e.failed)
		}
		text := fmt.Sprintf("refused with %d", e.response.status)
		if e.response.status == http.StatusOK {
			text = "refused as invalid, in the protocol of gRPC or Connect"
		}
		e.count(n, text)
		return nil
	}
	style, _ := fields.ParseStyle(string(e.Config.Proxy.HeaderStyle)) // The configuration was checked.
	x.Announce(style, e.response.Header())
	if x.Answer.Verdict == headgate.Deny {
		x.Refuse(&e.response)
		if fields.IsSpread(&x.Answer) {
			e.response.Header().Set("Retry-After", "1 or 2")
		}
	} else {
		e.forward = x.Forward(e.Guard, e.sent)
	}
	e.count(n, outcomeOf(&x.Answer))
	return nil
}

// outcomes are consecutive requests with the same result.
type outcomes struct {
	from, to int
	text     string
}

// maxRuns bounds the printed results of the requests before the last.
const maxRuns = 20

func (e *explanation) count(n int, text string) {
	last := len(e.runs) - 1
	switch {
	case last < 0 || e.runs[last].text != text && len(e.runs) < maxRuns:
		e.runs = append(e.runs, outcomes{n, n, text})
		return
	case e.runs[last].text != text:
		e.runs[last].text = "with different results"
	}
	e.runs[last].to = n
}

// outcomeOf describes the result of a request in a few words.
func outcomeOf(a *guard.Answer) string {
	closest := a.Closest()
	switch {
	case closest == nil:
		return "allowed, and no enforced rule counts it"
	case a.Drops():
		return "dropped without an answer, " + closest.Decision.Reason.String()
	case a.Verdict == headgate.Deny:
		return fmt.Sprintf("refused with %d, %s", fields.Status(a), closest.Decision.Reason)
	case a.Verdict == headgate.Wait:
		return "waits for capacity"
	}
	reason := headgate.WithinLimit
	for i := range a.Results {
		if r := &a.Results[i]; r.Enforced() {
			reason = max(reason, r.Decision.Reason)
		}
	}
	return "allowed, " + reason.String()
}

// answer records the answer to the client.
type answer struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter. It drops the body, because the output describes the
// answer in words.
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }
