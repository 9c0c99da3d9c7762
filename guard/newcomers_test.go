package guard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// A fifth client comes after four clients used all units. A name from a certificate or a token, or a trusted
// header, is admitted at once and has its default share within a tenth of the cycle. A name that it
// could have invented is refused. Units of requests that a rule refuses go back to the credit.
func TestNewcomersByName(t *testing.T) {
	for _, c := range []struct {
		client  string
		trusted bool // trusted_names
		share   int
	}{
		{"mtls_subject", false, 8},
		{"jwt:sub", false, 8},
		{"header:X-Client-Id", true, 8},
		{"header:X-Client-Id", false, 0},
	} {
		t.Run(fmt.Sprint(c.client, ", trusted names ", c.trusted), func(t *testing.T) {
			f, err := guard.NewFairShare(40, c.client)
			if err != nil {
				t.Fatal(err)
			}
			f.Cycle, f.TrustNames = 10*time.Second, c.trusted
			blocked := byClient(t, "blocked", "/blocked", headgate.Limit{Per: time.Second})
			g, _, clock := sharing(t, guard.Config{FairShare: f, Rules: []guard.Rule{blocked}})
			ask := func(path, name string) bool {
				req := request(path, name)
				req.Subject, req.Claims = name, headers{"sub": name}
				return decide(t, g, req).Verdict == headgate.Allow
			}
			clock.Advance(10*time.Second - time.Duration(clock.Now())%(10*time.Second))
			for i := range 40 {
				if !ask("/", string(rune('A'+i%4))) {
					t.Fatalf("request %d of the four clients is refused", i)
				}
			}
			clock.Advance(1800 * time.Millisecond)
			for range 20 {
				ask("/blocked", "new")
			}
			if first := ask("/", "new"); first != (c.share > 0) {
				t.Errorf("the first request is admitted: %v, want %v", first, c.share > 0)
			}
			clock.Advance(time.Second)
			admitted := 1
			for range 20 {
				if ask("/", "new") {
					admitted++
				}
			}
			if c.share > 0 && admitted != c.share || c.share == 0 && admitted != 1 {
				t.Errorf("%d units within a tenth of a cycle, want %d", admitted, c.share)
			}
			if s, _ := g.Shares(); s.Admitted != int64(40+c.share) {
				t.Errorf("the service gets %d units in the cycle, want %d", s.Admitted, 40+c.share)
			}
		})
	}
}
