package explain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/middleware/httplimit"
)

// Live is what a running instance would do with a request now.
type Live struct {
	Reading

	// Explained has what the keys have used. It is nil with Invalid, the error of a request that no rule decides.
	Explained *guard.Explanation
	Invalid   error
	// Status is that of the answer of the instance; 0 for a request that goes to the service.
	Status int

	exchange httplimit.Exchange
}

// Live explains the request with the counters of a running guard, which has the configuration. Nothing is counted: see guard.Explain.
func (r *Request) Live(ctx context.Context, c *config.Config, g *guard.Guard, now time.Time) (*Live, error) {
	l := &Live{Reading: Reading{Config: c, Guard: g, Now: now}}
	x := &l.exchange
	x.ResolvePath, x.OneValue, x.CORS = true, true, c.CORS // The proxy does the same.
	l.Request, l.Answer = &x.Request, &x.Answer
	if l.Invalid = x.Identify(g, r.http); l.Invalid == nil {
		l.Explained, l.Invalid = g.Explain(ctx, &x.Request, &x.Answer)
	}
	switch {
	case errors.Is(l.Invalid, guard.ErrDeciderExplains):
		return nil, l.Invalid
	case l.Invalid != nil:
		var w answer
		if x.Fail(&w, l.Invalid) {
			return nil, fmt.Errorf("the request could not be decided: %w", l.Invalid)
		}
		if l.Status = w.status; l.Status == http.StatusOK { // In the protocol of gRPC.
			l.Status = http.StatusBadRequest
		}
	case x.Answer.Verdict == headgate.Deny:
		l.Status = fields.Status(&x.Answer)
	}
	return l, nil
}
