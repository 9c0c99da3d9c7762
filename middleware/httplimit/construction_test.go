package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

// A middleware that can never decide fails when it is made.
func TestFailsAtConstruction(t *testing.T) {
	g := newGuard(t, allowed(), product(t))
	for want, build := range map[string]func(){
		"there is no guard":       func() { httplimit.New(nil, httplimit.Options{}) },
		"the next handler is nil": func() { httplimit.New(g, httplimit.Options{})(nil) },
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
					t.Errorf("it says %q, want %q", said, want)
				}
			}()
			build()
		}()
	}
}

// A guard that no constructor made lets nothing pass, and the log says why.
func TestZeroGuard(t *testing.T) {
	s := new(stage)
	s.guardBy(new(guard.Guard), httplimit.Options{})
	w := s.get(t, "/v1/product", nil)
	if s.request != nil || w.Code != http.StatusInternalServerError || !strings.Contains(s.log.String(), "not made by its constructor") {
		t.Errorf("status %d, reached %v, log %q", w.Code, s.request != nil, s.log.String())
	}
}

// After an error an Exchange refuses, whatever its front asks of it.
func TestExchangeRefusesAfterAnError(t *testing.T) {
	g := newGuard(t, allowed(), product(t))
	var x httplimit.Exchange
	for _, target := range []string{"/v1/product", "/v1//product", "/v1/product"} {
		err := x.Admit(g, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody))
		if failed := err != nil; failed != (x.Answer.Verdict == headgate.Deny) || failed != strings.Contains(target, "//") {
			t.Errorf("%s: %v, verdict %v", target, err, x.Answer.Verdict)
		}
		if err == nil {
			continue
		}
		w := httptest.NewRecorder()
		if x.Refuse(w); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: refused with %d", target, w.Code)
		}
	}
}
