//go:build soak && !race

package fairshare

import (
	"fmt"
	"testing"
	"time"
)

// TestSoakLastingNames prints the table of docs/fair-share.md: an hour of the first attack, and
// two minutes of the others. After an hour the attacking names are lasting too.
func TestSoakLastingNames(t *testing.T) {
	for _, reclaim := range Reclaims() {
		for i, s := range sieges() {
			d := 2 * time.Minute
			if i == 0 {
				d = Lasting
			}
			s.reclaim = reclaim
			t.Run(s.says, func(t *testing.T) { s.holds(t, d) })
		}
	}
}

// TestSoakIrregularClients prints the table of clients with irregular requests.
func TestSoakIrregularClients(t *testing.T) {
	for _, reclaim := range Reclaims() {
		for _, n := range []int{4, 10, 50} {
			for _, part := range []float64{0.8, 0.64} {
				s := siege{honest: n, names: 1000, rate: 2000, part: part, poisson: true, reclaim: reclaim}
				t.Run(fmt.Sprint(n, " clients"), func(t *testing.T) { s.irregular(t) })
			}
		}
	}
}

// irregular fails if clients that request four fifths of what they keep lose more than 5 %.
// With a larger demand the loss is larger, as the table shows.
func (s siege) irregular(t *testing.T) {
	t.Helper()
	got := s.play(t, 10*time.Minute)
	average := float64(got.refused) / float64(got.asked)
	t.Logf("| %d clients | %v | %.0f %% | %.2f %% | %.2f %% | %.2f %% |",
		s.honest, s.reclaim, 100*s.part, 100*average, 100*got.worst, 100*got.worstOne)
	if s.reclaim == AtOnce && s.part < s.kept() && got.worst > 0.05 {
		t.Errorf("all clients together lost %.4f of their requests in ten seconds, want at most 0.05", got.worst)
	}
}
