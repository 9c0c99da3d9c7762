package limiters

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/guard/fairshare"
)

// HeadgateFairShare is the name of Headgate's fair-share side.
const HeadgateFairShare = "headgate fairshare.Limiter.Take"

// FairShare returns Headgate's fair-share limiter. The capacity is one Burst for each
// client, and all clients are configured.
func FairShare(clients []string) KeyedMaker {
	return KeyedMaker{Name: HeadgateFairShare, Kind: contest.Ours, New: func(l Limit, _ Room) (Keyed, error) {
		limiter, err := fairshare.New(0, Shares(l, clients))
		return fairShare{limiter: limiter, start: time.Now()}, err
	}}
}

// Shares gives each client a Burst in every cycle. A cycle lasts l.Per, but at most
// fairshare.MostCycle.
func Shares(l Limit, clients []string) fairshare.Config {
	weights := make(map[string]int64, len(clients))
	for _, name := range clients {
		weights[name] = 1
	}
	return fairshare.Config{
		Capacity: int64(l.Burst) * int64(len(clients)), Cycle: min(l.Per, fairshare.MostCycle), Reservation: 10,
		Weights: weights, NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: len(clients),
	}
}

// fairShare counts time from start, so that its first cycle begins at start. A cycle of
// an hour then does not end during a measurement.
type fairShare struct {
	noGoroutines

	limiter *fairshare.Limiter
	start   time.Time
}

func (f fairShare) Take(keys []string, from, n int) (t contest.Tally) {
	mask := len(keys) - 1
	for i := range n {
		now := headgate.Instant(time.Since(f.start))
		d, _ := f.limiter.Take(now, fairshare.Request{Client: keys[(from+i)&mask], Cost: 1})
		count(&t, d.Verdict, nil)
	}
	return t
}
