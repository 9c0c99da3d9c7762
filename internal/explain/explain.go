package explain

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/fields"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/open"
)

// mostTimes bounds Flags.Times: a million requests take some seconds.
const mostTimes = 1_000_000

// Request is a request to explain, and how often it is made.
type Request struct {
	http  *http.Request
	times int
}

// Explain makes the request, with empty counters, and writes what becomes of it. All
// requests come at now: nothing refills between them, and no request waits.
func (r *Request) Explain(out io.Writer, c *config.Config, now time.Time) error {
	g, err := frozenGuard(c.InMemory(), now)
	if err != nil {
		return err
	}
	e := &explanation{config: c, guard: g, request: r.http}
	e.exchange.ResolvePath = true // As the proxy does.
	ctx := r.http.Context()
	for n := 1; n <= r.times && ctx.Err() == nil; n++ {
		if err := e.ask(n); err != nil {
			return err
		}
	}
	return errors.Join(ctx.Err(), e.write(out))
}

// frozenGuard is the configuration's, on a store of which the clock stands still; so
// does that of fair share, at the begin of a cycle.
func frozenGuard(c *config.Config, now time.Time) (*guard.Guard, error) {
	at := headgate.Instant(now.UnixNano())
	of := c.StoreConfig()
	of.Clock = func() headgate.Instant { return at }
	store, err := memory.New(of)
	if err != nil {
		return nil, err
	}
	described, err := open.GuardConfig(c, store)
	if err != nil {
		return nil, err
	}
	shared := cycleStart(c, now)
	described.Clock = func() headgate.Instant { return shared }
	return guard.New(described)
}

// explanation is what is known of the last request that was made, and how often the
// ones before ended in what way.
type explanation struct {
	config  *config.Config
	guard   *guard.Guard
	request *http.Request

	exchange httplimit.Exchange
	answer   answer
	// failed is why the request could not be decided; it is the sender's fault.
	failed  error
	forward *http.Request // nil when the service does not see it
	runs    []outcomes
}

// ask makes the request once more, for the n-th time.
func (e *explanation) ask(n int) error {
	x := &e.exchange
	e.answer, e.forward = answer{}, nil
	if e.failed = x.Admit(e.guard, e.request); e.failed != nil {
		if x.Fail(&e.answer, e.failed) {
			return fmt.Errorf("check: the request could not be decided: %w", e.failed)
		}
		text := fmt.Sprintf("refused with %d", e.answer.status)
		if e.answer.status == http.StatusOK {
			text = "refused as invalid, in the protocol of gRPC or Connect"
		}
		e.count(n, text)
		return nil
	}
	style, _ := fields.ParseStyle(string(e.config.Proxy.HeaderStyle)) // The configuration was checked.
	x.Announce(style, e.answer.Header())
	if x.Answer.Verdict == headgate.Deny {
		x.Refuse(&e.answer)
	} else {
		e.forward = x.Forward(e.guard, e.request)
	}
	e.count(n, outcomeOf(&x.Answer))
	return nil
}

// outcomes are requests, one after the other, that ended in one way.
type outcomes struct {
	from, to int
	text     string
}

// mostRuns bounds what is told of requests before the last.
const mostRuns = 20

func (e *explanation) count(n int, text string) {
	last := len(e.runs) - 1
	switch {
	case last < 0 || e.runs[last].text != text && len(e.runs) < mostRuns:
		e.runs = append(e.runs, outcomes{n, n, text})
		return
	case e.runs[last].text != text:
		e.runs[last].text = "in one way and another"
	}
	e.runs[last].to = n
}

// outcomeOf says in a few words what becomes of a request.
func outcomeOf(a *guard.Answer) string {
	closest := a.Closest()
	switch {
	case closest == nil:
		return "let pass, and not counted by a rule that is enforced"
	case a.Verdict == headgate.Deny:
		return fmt.Sprintf("refused with %d, %s", fields.Status(a), closest.Decision.Reason)
	case a.Verdict == headgate.Wait:
		return "held back until there is room"
	}
	reason := headgate.WithinLimit
	for i := range a.Results {
		if r := &a.Results[i]; r.Enforced() {
			reason = max(reason, r.Decision.Reason)
		}
	}
	return "let pass, " + reason.String()
}

// answer is what a client would get.
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

// Write implements http.ResponseWriter; what a body says is told in words.
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }
