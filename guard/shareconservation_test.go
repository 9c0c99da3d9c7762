package guard

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/fairshare"
)

// TestConservationOfShares uses random fair share and rules. Each request that reaches the service
// has taken its cost from a share once, and no other request has. No rule sees a request that
// enforced fair share refuses.
func TestConservationOfShares(t *testing.T) {
	for seed := range stories(600) {
		synctest.Test(t, func(t *testing.T) {
			story := newStory(t, seed, nil)
			story.share(t)
			for n := range 40 {
				story.shareStep(t, n)
			}
			story.end()
		})
		if t.Failed() {
			return
		}
	}
}

// share adds a random fair share to a story.
func (s *story) share(t *testing.T) {
	t.Helper()
	f, err := NewFairShare(3+s.rnd.Int64N(20), "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Cost, f.Mode = s.rnd.Int64N(4), Mode(s.rnd.IntN(2))
	f.Reclaim = fairshare.Reclaims()[s.rnd.IntN(2)]
	c := s.guard.current.Load().config
	c.FairShare = f
	if err := s.guard.Reload(c); err != nil {
		t.Fatal(err)
	}
}

// counted gives the units admitted and refused for a client since it is known.
func (s *story) counted(name string) (admitted, refused uint64) {
	shares, _ := s.guard.Shares()
	for _, c := range shares.Clients {
		if c.Client == name {
			return c.AdmittedTotal, c.RefusedTotal
		}
	}
	return 0, 0
}

func (s *story) shareStep(t *testing.T, n int) {
	t.Helper()
	s.pass(400)
	name := []string{"a", "b", "c"}[s.rnd.IntN(3)]
	req, a := &headgate.Request{Method: "GET", Path: "/", Header: sender(name)}, &s.answer
	admitted, refused := s.counted(name)
	before := s.left(t, req, false)
	if err := s.guard.Decide(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	share := shareResult(a)
	taken, over := uint64(0), uint64(0)
	switch cost := uint64(share.cost); {
	case share.Decision.Verdict == headgate.Deny:
		over = cost
	case a.Verdict != headgate.Deny:
		taken = cost
	}
	s.counts(t, n, name, admitted+taken, refused+over)
	if over > 0 && share.Enforced() && !s.guard.current.Load().independent {
		if after := s.left(t, req, false); !maps.Equal(before, after) || len(a.Results) != 1 {
			t.Errorf("seed %d, request %d: fair share refuses, and the rules go from %+v to %+v", s.seed, n, before, after)
		}
	}
	if a.Verdict == headgate.Wait && s.rnd.IntN(2) == 0 {
		s.cancel(t, n, req, a, before)
		s.counts(t, n, name, admitted, refused+over) // In shadow, a request that fair share refuses waits too.
	}
}

func shareResult(a *Answer) *Result {
	for i := range a.Results {
		if r := &a.Results[i]; r.Stage == FairShareName {
			return r
		}
	}
	return nil
}

func (s *story) counts(t *testing.T, n int, name string, admitted, refused uint64) {
	t.Helper()
	if a, r := s.counted(name); a != admitted || r != refused {
		t.Errorf("seed %d, request %d by %s: %d admitted and %d refused, want %d and %d: %+v",
			s.seed, n, name, a, r, admitted, refused, s.answer.Results)
	}
}
