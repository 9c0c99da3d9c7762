package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fairshare"
	"github.com/headgate/headgate/rule"
)

// FairShareName is the name of the stage, and of the rule that describes it to logs and
// callers. No rule of the Config has this name.
const FairShareName = "fair_share"

// FairShare divides the capacity of the service among its clients: see package
// fairshare. It is asked before the rules: what it refuses, they do not count.
type FairShare struct {
	// Config says what is shared, and how. The names in Weights are what clients say, and
	// addresses as rule.Part.AppendClient writes them; a name that rule.ClientName gives
	// another is known under that.
	fairshare.Config

	// Client is the part of a request that names its client, as rule.Part.AppendClient
	// reads it.
	Client rule.Part
	// Match says which requests fair share is asked about; the zero Match is all of them.
	// Exempt lists those among them that it passes over. Calls of gRPC's health and
	// reflection are exempt in any case.
	Match  rule.Match
	Exempt Exempt
	// Anonymous is the client that requests count for which name none; "" refuses them.
	Anonymous string
	// Cost is what a request of unstated cost takes; 0 counts as 1.
	Cost int64
	// CostHeader names the header in which a request states its cost; "" is none.
	CostHeader string
	// MaxCost bounds what a request may state; 0 is Capacity.
	MaxCost int64
	// IDHeader names the header whose value tells retries from new requests, under
	// Config.CountOnce; "" is none.
	IDHeader string
	// Mode Shadow decides and reports, and refuses nothing. Off does not
	// look at it, and who is known is forgotten as if he asked for nothing.
	Mode Mode
}

// NewFairShare gives a FairShare of a capacity in units a second, among the clients
// that a part of a request names, like header:X-Client-Id. The rest is as in
// configurations that do not tell: a client that asks for nothing keeps 10 % of its
// default share, is forgotten after 30 cycles, and gets what it lent back at once; 10
// new clients a cycle get shares of their own, up to 1000 in all. The error is a
// *rule.ParseError.
func NewFairShare(capacity int64, client string) (*FairShare, error) {
	part, err := rule.ParsePart(client)
	if err != nil {
		return nil, err
	}
	return &FairShare{Client: part, Config: fairshare.Config{
		Capacity: capacity, Cycle: time.Second, Reservation: 10, NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	}}, nil
}

// Rule gives the rule under which results, reports and callers see fair share. Its
// key is the client; it has no limits, since those are the clients' shares.
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

// Check says which setting does not fit, and what to write instead.
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

// Shares tells who has what of the capacity now; false is without fair share, or when
// it is Off.
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
