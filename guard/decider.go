package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Decider decides requests elsewhere, in place of fair share and rules: package client asks a decision server. A Decider
// is safe for concurrent use.
type Decider interface {
	// Decide decides a request, and waits for one that must wait. It appends the results to those of a, the one that
	// determines the verdict first, and sets the verdict, which is Allow or Deny. The error is that of ctx, a *CostError or a
	// *RequestError, or says why the request cannot be decided.
	Decide(ctx context.Context, req *headgate.Request, a *Answer) error
	// Reads gives what the rules read. A Guard asks when it is made and reloaded.
	Reads() Reading
}

// FrontDecider is a Decider that wants to know the fronts of its Guard: they may not give all parts of keys by which it counts.
type FrontDecider interface {
	Decider

	// Attached says that a front was attached. Attach holds a lock of the Guard meanwhile.
	Attached(f Front)
}

// Reading says what the rules of a Decider read.
type Reading struct {
	Needs rule.Needs
	Reads rule.Reads
	// Parts are those of keys that count requests without a domain, as far as a front may lack them: see Guard.CheckFront.
	Parts []rule.Part
	// Marks are the headers that its answers set for services, in canonical spelling.
	Marks []string
}

// RequestError says that a Decider cannot decide a request because of what its sender sent: HTTP answers 400.
type RequestError struct {
	// Problem gives the problem and the fix.
	Problem string
}

// Error gives the problem and the fix.
func (e *RequestError) Error() string { return "guard: " + e.Problem }

// errDeciderAlone says which parts of a Config have no effect with a Decider.
var errDeciderAlone = errors.New("guard: Config.Decider decides in place of FairShare, Rules, Exempt and Domains: leave these out")

// decider adds the facts of the Decider to the set.
func (s *set) decider(c *Config) error {
	switch {
	case c.Decider == nil:
		return nil
	case c.FairShare != nil || len(c.Rules) > 0 || len(c.Domains) > 0 || len(c.Exempt) > 0:
		return errDeciderAlone
	}
	f := c.Decider.Reads()
	s.needs |= f.Needs
	s.reads = f.Reads
	for _, name := range f.Marks {
		s.marks = append(s.marks, spellings(name)...)
	}
	return nil
}

// deciderSource asks the Decider, which decides one request after the other.
type deciderSource struct{ *set }

func (s deciderSource) ask(ctx context.Context, q *question, requests []headgate.Request, answers []Answer) (waited time.Duration) {
	for i := range requests {
		if err := s.askOne(ctx, &requests[i], &answers[i]); err != nil {
			answers[i].fail(err)
		}
	}
	q.ops, q.receipts = q.ops[:0], q.receipts[:0] // Those of another Guard, which a Decider may have asked for the same Answer.
	return 0
}

func (deciderSource) settle(context.Context, int, *headgate.Request, *Answer, error) {} // The Decider has decided.

func (s deciderSource) askOne(ctx context.Context, req *headgate.Request, a *Answer) error {
	a.reset()
	a.from = s.set
	if req.Cost < 0 || req.Cost > headgate.MaxUnits {
		return headgate.ErrBadCost
	}
	if s.logged != 0 {
		s.resolve(req, a, s.logged)
	}
	if err := s.config.Decider.Decide(ctx, req, a); err != nil {
		return err
	}
	if a.Verdict == headgate.Wait {
		return fmt.Errorf("guard: the Decider gave the verdict %v: it must wait itself", a.Verdict)
	}
	for i := range a.Results {
		a.Results[i].op = opDecided
	}
	if len(a.Results) > 0 {
		a.closest = 0
	}
	return nil
}
