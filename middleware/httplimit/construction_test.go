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

// TestFailsAtConstruction checks that New panics for arguments that can never work.
func TestFailsAtConstruction(t *testing.T) {
	g := newGuard(t, allowed(), product(t))
	for want, build := range map[string]func(){
		"New got a nil guard":     func() { httplimit.New(nil, httplimit.Options{}) },
		"the next handler is nil": func() { httplimit.New(g, httplimit.Options{})(nil) },
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
					t.Errorf("panic with %q, want %q", said, want)
				}
			}()
			build()
		}()
	}
}

// TestZeroGuard checks that a guard without constructor refuses every request, and that the
// log says why.
func TestZeroGuard(t *testing.T) {
	s := new(stage)
	s.guardBy(new(guard.Guard), httplimit.Options{})
	w := s.get(t, "/v1/product", nil)
	if s.request != nil || w.Code != http.StatusInternalServerError || !strings.Contains(s.log.String(), "not made by its constructor") {
		t.Errorf("got status %d, service reached: %v, log %q", w.Code, s.request != nil, s.log.String())
	}
}

// TestExchangeRefusesAfterAnError checks that an Exchange refuses after an error, whichever
// method the caller uses next.
func TestExchangeRefusesAfterAnError(t *testing.T) {
	g := newGuard(t, allowed(), product(t))
	var x httplimit.Exchange
	for _, target := range []string{"/v1/product", "/v1//product", "/v1/product"} {
		err := x.Admit(g, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody))
		if failed := err != nil; failed != (x.Answer.Verdict == headgate.Deny) || failed != strings.Contains(target, "//") {
			t.Errorf("%s: got error %v, verdict %v", target, err, x.Answer.Verdict)
		}
		if err == nil {
			continue
		}
		w := httptest.NewRecorder()
		if x.Refuse(w); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: got status %d", target, w.Code)
		}
	}
}
