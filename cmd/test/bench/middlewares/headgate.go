package middlewares

import (
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/testkit/atmost"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// Names of Headgate's sides. Headgate sends the default header fields, and HeadgateX
// sends the fields that the peers send.
const (
	Headgate  = "headgate httplimit"
	HeadgateX = "headgate httplimit, X-RateLimit"
	// HeadgateStage has a stage of admission after its rule.
	HeadgateStage = "headgate httplimit, a stage"
)

func newHeadgate(l limiters.Limit, next http.Handler) (http.Handler, error) {
	return guarded(l, fields.Draft, next)
}

func newHeadgateX(l limiters.Limit, next http.Handler) (http.Handler, error) {
	return guarded(l, fields.XRateLimit, next)
}

func newHeadgateStage(l limiters.Limit, next http.Handler) (http.Handler, error) {
	return guarded(l, fields.Draft, next, atmost.New(1000, 0))
}

func guarded(l limiters.Limit, style fields.Style, next http.Handler, stages ...guard.Stage) (http.Handler, error) {
	store, err := memory.New(memory.Config{MaxMemory: 16 << 20})
	if err != nil {
		return nil, err
	}
	client, err := rule.ParsePart("header:" + header)
	if err != nil {
		return nil, err
	}
	g, err := guard.New(guard.Config{Store: store, Stages: stages, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "client", Key: []rule.Part{client}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: int64(l.Count), Per: l.Per, Burst: int64(l.Burst)}}},
	}}})
	if err != nil {
		return nil, err
	}
	return httplimit.New(g, httplimit.Options{Style: style})(next), nil
}
