package fields_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// unreachable is a store that always fails.
type unreachable struct{ scripted }

func (unreachable) Apply(context.Context, []headgate.Op, []headgate.Decision) error {
	return errors.New("unreachable")
}

// TestFallbackAllowAnnouncesNothing checks that a request allowed by fallback has no fields,
// because its units were not counted. A refusal by fallback deny has the fields, with the
// time to retry.
func TestFallbackAllowAnnouncesNothing(t *testing.T) {
	for fallback, want := range map[guard.Fallback]bool{guard.FallbackAllow: false, guard.FallbackDeny: true} {
		r := named("search", guard.Enforce)
		r.Fallback = fallback
		g, err := guard.New(guard.Config{Rules: []guard.Rule{r}, Store: unreachable{}})
		if err != nil {
			t.Fatal(err)
		}
		var a guard.Answer
		if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, &a); err != nil {
			t.Fatal(err)
		}
		for _, style := range []fields.Style{fields.Draft, fields.XRateLimit, fields.Draft03} {
			h := http.Header{}
			style.Announce(h, &a)
			if announced := len(h) > 0; announced != want {
				t.Errorf("fallback %v, style %v: got %v, want fields: %v", fallback, style, h, want)
			}
		}
	}
}
