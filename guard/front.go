package guard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Front describes the code that turns requests of a protocol into requests of a Guard.
type Front struct {
	// Name names the front in errors.
	Name string
	// Supplies are the parts of keys that the front gives.
	Supplies rule.Supply
	// Bytes says that the front counts the bytes of bodies: see Ticket.CountsBytes.
	Bytes bool
	// Method is the method of all requests of the front. "" means that they can have any.
	Method string
	// Fix says in errors what to do about a part that the front cannot give. "" means the usual advice.
	Fix string
}

// meets reports whether a request of the front can match m.
func (f *Front) meets(m *rule.Match) bool {
	if m.ForQueries() {
		return false
	}
	return f.Method == "" || len(m.Methods) == 0 || slices.ContainsFunc(m.Methods, func(text string) bool {
		method, err := rule.ParseMethod(text)
		return err == nil && (method == f.Method || method == http.MethodGet && f.Method == http.MethodHead)
	})
}

// seesBodies gives the *BytesError of a rule that counts or reads bodies which the front does not see; nil for none.
func (f *Front) seesBodies(r *Rule) error {
	switch {
	case r.Bytes != 0 && !f.Bytes:
		return &BytesError{Front: f.Name, Rule: r.Name}
	case (r.SettleBody != nil || r.ReadsBody()) && f.Supplies&rule.SupplyBodies == 0:
		return &BytesError{Front: f.Name, Rule: r.Name, Reads: true}
	default:
		return nil
	}
}

// UnsuppliedError says that a front cannot give a part of a key. All clients would share one key.
type UnsuppliedError struct {
	// Front is the name of the front, and By what counts by the part: a rule in quotation marks, or "fair share".
	Front, By string
	// Part is the part that the front cannot give.
	Part rule.Part
	// Fix says what to do.
	Fix string
}

// Error names the front, the rule and the part, and says what to do.
func (e *UnsuppliedError) Error() string {
	return fmt.Sprintf("guard: %s counts by %s, which %s cannot give, so that all clients would share one key: %s",
		e.By, e.Part, e.Front, cmp.Or(e.Fix, "use another key, or let the rule match a domain or a descriptor, so that it applies only to "+
			"queries of a decision server"))
}

// Attach tells the Guard that a front gives it requests. The error is a *UnsuppliedError if a key that counts the front's requests
// has a part that the front cannot give, and a *BytesError if a rule counts or reads bodies that the front does not see. Reload then
// refuses such rules too. Fronts call Attach when they are made. A rule that none of the front's requests can match is not checked: one
// for another method, or for the queries of a decision server.
func (g *Guard) Attach(f Front) error {
	if g.now() == nil {
		return headgate.ErrNotMade
	}
	g.reloading.Lock()
	defer g.reloading.Unlock()
	s := g.now()
	if err := s.suppliedBy(f); err != nil {
		return err
	}
	if !slices.Contains(g.fronts, f) {
		g.fronts = append(g.fronts, f)
	}
	if d, tells := s.config.Decider.(FrontDecider); tells {
		d.Attached(f)
	}
	return nil
}

// CheckFront gives the error that Attach would give, and attaches nothing. With a Decider, the error may also be about its Parts. A change
// of these Parts by a server must not stop programs, so Attach and Reload do not check them, and tell the Decider: see FrontDecider.
func (g *Guard) CheckFront(f Front) error {
	s := g.now()
	if s == nil {
		return headgate.ErrNotMade
	}
	if err := s.suppliedBy(f); err != nil {
		return err
	}
	if d := s.config.Decider; d != nil {
		r := d.Reads()
		return r.Lacks(f)
	}
	return nil
}

// Lacks gives a *UnsuppliedError if the front cannot give one of the Parts.
func (r *Reading) Lacks(f Front) error {
	for _, p := range r.Parts {
		if p.Supply()&^f.Supplies != 0 {
			return &UnsuppliedError{f.Name, "a rule of the server", p, f.Fix}
		}
	}
	return nil
}

// Parts names the parts of keys that a front can lack: of the rules of the Mode Enforce that can match a request without a domain and
// descriptors, and of fair share. The caller must not change the list.
func (g *Guard) Parts() []string {
	if s := g.now(); s != nil {
		return s.parts
	}
	return nil
}

// readKey notes the parts of a rule's key that a front can lack.
func (s *set) readKey(r *Rule) {
	switch {
	case r.Mode != Enforce:
	case r.Match.ForQueries():
		s.beyondQueries = s.beyondQueries || slices.ContainsFunc(r.Key, rule.Part.BeyondQueries)
	default:
		s.addParts(r.Key...)
	}
}

// addParts adds parts of keys that a front can lack.
func (s *set) addParts(parts ...rule.Part) {
	for _, p := range parts {
		s.keyed |= p.Supply()
		if name := p.String(); p.Supply() != 0 && !slices.Contains(s.parts, name) {
			s.parts = append(s.parts, name)
		}
	}
}

// supplied checks the keys of s for all fronts that are attached.
func (s *set) supplied(fronts []Front) error {
	for _, f := range fronts {
		if err := s.suppliedBy(f); err != nil {
			return err
		}
	}
	return nil
}

// DecideFrom is Decide for a front that is not attached, because it is one of several for the same rules, and the others give more
// parts of keys. The error is a *UnsuppliedError, and nothing is counted, if the request counts by a part that the front cannot give:
// under a rule of the Mode Enforce, or in fair share of this Mode.
func (g *Guard) DecideFrom(ctx context.Context, f *Front, req *headgate.Request, a *Answer) error {
	if a.begun == nil || a.begun.guard != g {
		g.Begin(a)
	}
	if s := a.begun; s != nil && s.keyed&^f.Supplies != 0 {
		if err := s.lacking(f, req, a); err != nil {
			a.fail(err)
			return err
		}
	}
	return g.Decide(ctx, req, a)
}

// lacking finds what counts a request by a part that the front cannot give.
func (s *set) lacking(f *Front, req *headgate.Request, a *Answer) error {
	if s.config.WithoutState {
		return nil // Each request is refused.
	}
	sent := req.Path
	req.Path = s.config.Folds.Path(sent)
	defer func() { req.Path = sent }()
	if s.needs&rule.NeedClientIP != 0 {
		s.resolve(req, a, rule.NeedClientIP)
	}
	if s.exempt.Has(req) {
		return nil
	}
	lacks := func(p rule.Part) bool { return p.Supply()&^f.Supplies != 0 }
	if h := s.share; h != nil && h.Mode == Enforce && lacks(h.Client) && s.shareExempt(req, a) == "" {
		return &UnsuppliedError{f.Name, "fair share", h.Client, f.Fix}
	}
	a.matched = s.match(req, a, a.matched[:0])
	for _, m := range a.matched {
		r := s.rules[m].Rule
		if at := slices.IndexFunc(r.Key, lacks); at >= 0 && r.Mode == Enforce {
			return &UnsuppliedError{f.Name, fmt.Sprintf("rule %q", r.Name), r.Key[at], f.Fix}
		}
	}
	return nil
}

// The front that gives descriptors alone.
const (
	queryFront = "Envoy's rate limit service"
	queryFix   = "count by descriptor:NAME, or ask over headgate.v1 or /v1/decide"
)

// unsupplied finds a rule that may refuse one of the queries and counts by a part that no query of descriptors has. It is nil if there
// is none. A rule in shadow refuses nothing, so its key refuses nothing either. The search costs nothing unless there is such a rule.
func (s *set) unsupplied(queries []headgate.Request) *UnsuppliedError {
	if !s.beyondQueries {
		return nil
	}
	var matched []int
	for i := range queries {
		matched = s.match(&queries[i], nil, matched[:0])
		for _, m := range matched {
			r := s.rules[m].Rule
			if at := slices.IndexFunc(r.Key, rule.Part.BeyondQueries); at >= 0 && r.Mode == Enforce {
				return &UnsuppliedError{queryFront, fmt.Sprintf("rule %q", r.Name), r.Key[at], queryFix}
			}
		}
	}
	return nil
}

func (s *set) suppliedBy(f Front) error {
	lacks := func(p rule.Part) bool { return p.Supply()&^f.Supplies != 0 }
	for i := range s.rules {
		r := s.rules[i].Rule
		if at := slices.IndexFunc(r.Key, lacks); at >= 0 && f.meets(&r.Match) {
			return &UnsuppliedError{f.Name, fmt.Sprintf("rule %q", r.Name), r.Key[at], f.Fix}
		}
		if sees := f.seesBodies(r); sees != nil && f.meets(&r.Match) {
			return sees
		}
	}
	if s.share != nil && s.share.Mode != Off && lacks(s.share.Client) && f.meets(&s.share.Match) {
		return &UnsuppliedError{f.Name, "fair share", s.share.Client, f.Fix}
	}
	for _, stage := range s.config.Stages {
		r := stage.Rule()
		if at := slices.IndexFunc(r.Key, lacks); at >= 0 && r.Mode != Off {
			return &UnsuppliedError{f.Name, fmt.Sprintf("stage %q", r.Name), r.Key[at], f.Fix}
		}
	}
	return nil
}
