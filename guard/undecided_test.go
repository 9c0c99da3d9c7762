package guard_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// After an error, verdict and status let no request pass.
func TestErrorsDeny(t *testing.T) {
	g, err := guard.New(guard.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		guard *guard.Guard
		cost  int64
		want  error
	}{
		{g, -1, headgate.ErrBadCost},
		{g, headgate.MaxUnits + 1, headgate.ErrBadCost},
		{new(guard.Guard), 1, headgate.ErrNotMade},
		{nil, 1, headgate.ErrNotMade},
	} {
		var a guard.Answer
		c.guard.Begin(&a)
		err := c.guard.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/", Cost: c.cost}, &a)
		if !errors.Is(err, c.want) || a.Verdict != headgate.Deny || fields.Status(&a) != http.StatusInternalServerError || a.Closest() != nil {
			t.Errorf("cost %d: %v, verdict %v, status %d, want %v and deny", c.cost, err, a.Verdict, fields.Status(&a), c.want)
		}
		if err := g.Decide(t.Context(), new(headgate.Request), &a); err != nil || a.Verdict != headgate.Allow {
			t.Errorf("the next request: %v, verdict %v", err, a.Verdict)
		}
	}
}

// An invalid Config fails at construction, with the fix in the error.
func TestFailsAtConstruction(t *testing.T) {
	for want, c := range map[string]guard.Config{
		"StoreTimeout is -1s": {StoreTimeout: -time.Second},
		"NewState":            {State: new(guard.State)},
	} {
		if g, err := guard.New(c); g != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v, want an error with %q", c, g, err, want)
		}
	}
}
