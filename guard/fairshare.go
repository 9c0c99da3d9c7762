package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/rule"
)

// FairShareName is the name of the step, and of the rule that describes it in logs and to callers.
// No rule of the Config may have this name.
const FairShareName = "fair_share"

// FairShare divides the capacity of the service among its clients; see package fairshare. It
// decides before the rules, and the rules do not count the requests that it refuses.
type FairShare struct {
	// Config sets the capacity and its division. The names in Weights are those that clients use;
	// addresses are written as by rule.Part.AppendClient. If rule.ClientName changes a name, the
	// client is known by the changed name.
	fairshare.Config

	// Client is the part of a request that names its client, read by rule.Part.AppendClient.
	Client rule.Part
	// Match selects the requests that fair share decides on. The zero Match selects all. Exempt
	// lists exceptions. Calls of gRPC's health and reflection are always exempt.
	Match  rule.Match
	Exempt Exempt
	// Anonymous is the client of requests that name none; "" refuses such requests.
	Anonymous string
	// Cost is the cost of a request that states none; 0 counts as 1.
	Cost int64
	// CostHeader names the header in which a request states its cost. Without a name, requests
	// cannot state a cost.
	CostHeader string
	// MaxCost bounds the cost that a request may state; 0 is Capacity.
	MaxCost int64
	// IDHeader names the header that tells retries from new requests, under Config.CountOnce.
	// Without a name, every attempt is a new request.
	IDHeader string
	// Mode Shadow decides and reports, and refuses nothing. Off skips fair share, and forgets its
	// clients.
	Mode Mode
}

// NewFairShare gives a FairShare with a capacity in units a second. The clients are named by a
// part of a request, like header:X-Client-Id. The other settings are the defaults of
// configurations. An idle client keeps 10 % of its default share, is forgotten after 30 cycles,
// and gets lent units back at once. 10 new clients a cycle get their own shares, up to 1000
// clients in all. The error is a *rule.ParseError.
func NewFairShare(capacity int64, client string) (*FairShare, error) {
	part, err := rule.ParsePart(client)
	if err != nil {
		return nil, err
	}
	return &FairShare{Client: part, Config: fairshare.Config{
		Capacity: capacity, Cycle: time.Second, Reservation: 10, NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	}}, nil
}

// Rule gives the rule that describes fair share in results, in reports and to callers. Its key is
// the client. It has no limits: the limits are the clients' shares.
func (f *FairShare) Rule() Rule {
	most := f.MaxCost
	if most == 0 {
		most = f.Capacity
	}
	return Rule{
		Rule: rule.Rule{Name: FairShareName, Key: []rule.Part{f.Client}},
		Cost: f.Cost, CostHeader: f.CostHeader, MaxCost: most,
		Mode: f.Mode,
	}
}

// Check finds an invalid setting, and says what to write instead.
func (f *FairShare) Check() error {
	switch {
	case f.Client == rule.Part{}:
		return errors.New("it has no client: write which part of a request names its client, like header:X-Client-Id")
	case f.Client.String() == "all":
		return errors.New("all names no client: use a part that tells clients apart, like header:X-Client-Id")
	case f.Mode > Off:
		return fmt.Errorf("mode %d is not known: use the constants", f.Mode)
	case f.Cost < 0 || f.Cost > headgate.MaxUnits || f.MaxCost < 0 || f.MaxCost > headgate.MaxUnits:
		return headgate.ErrBadCost
	case f.CountOnce && f.IDHeader == "":
		return errors.New("retries are to count once and nothing tells them: set IDHeader, or leave out CountOnce")
	}
	for _, header := range [...]string{f.CostHeader, f.IDHeader} {
		if err := checkHeader(header); err != nil {
			return err
		}
	}
	if _, err := newScope(f, rule.Folds{}); err != nil {
		return err
	}
	return f.Config.Check()
}

// Shares gives the current shares of the clients. It reports false without fair share, and when
// fair share is Off.
func (g *Guard) Shares() (fairshare.Shares, bool) {
	s := g.now()
	if s == nil {
		return fairshare.Shares{}, false
	}
	h := s.share
	if h == nil || h.Mode == Off {
		return fairshare.Shares{}, false
	}
	return h.limiter.Shares(g.clock.Now()), true
}
