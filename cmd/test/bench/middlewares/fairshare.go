package middlewares

import (
	"net/http"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// HeadgateFairShare is the name of httplimit with fair share and without rules.
const HeadgateFairShare = "headgate httplimit, fair share"

// FairShare returns httplimit with a fair share of a capacity. The clients of Requests(n)
// are configured, and the capacity is one Burst for each client.
func FairShare(n int) Maker {
	return Maker{Name: HeadgateFairShare, Kind: contest.Ours, New: func(l limiters.Limit, next http.Handler) (http.Handler, error) {
		clients := make([]string, n)
		for i := range clients {
			clients[i] = clientName(i)
		}
		client, err := rule.ParsePart("header:" + header)
		if err != nil {
			return nil, err
		}
		// The first cycle begins now. A cycle of an hour then does not end during a measurement.
		start := time.Now()
		clock := func() headgate.Instant { return headgate.Instant(time.Since(start)) }
		share := guard.FairShare{Client: client, Config: limiters.Shares(l, clients)}
		g, err := guard.New(guard.Config{FairShare: &share, Clock: clock})
		if err != nil {
			return nil, err
		}
		return httplimit.New(g, httplimit.Options{})(next), nil
	}}
}
