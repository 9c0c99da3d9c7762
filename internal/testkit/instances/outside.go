package instances

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/errortype"
)

// Outside has instances whose clocks are wrong by five months. Their months do not contain the time of the server's clock,
// so the store counts nothing. The error states both times and their difference.
func Outside(t *testing.T, store headgate.Store) {
	t.Helper()
	const days = 150 * 24 * time.Hour
	months := monthsBeginAt(time.Now().Add(10 * 24 * time.Hour).Truncate(time.Second))
	right := newInstance(t, store, months, 0)
	for _, customer := range customers("outside") {
		for words, skew := range map[string]time.Duration{
			"before the window that begins at ": days,
			"after the window that ends at ":    -days,
		} {
			wrong := newInstance(t, store, months, skew)
			earliest := time.Now()
			_, err := take(t, wrong, customer)
			edge, found := errortype.As[*headgate.EdgeError](err)
			if !found {
				t.Fatalf("a clock wrong by %s: %v, want an EdgeError", skew, err)
			}
			checkEdgeError(t, edge, words, months, earliest, skew)
		}
		d, err := take(t, right, customer)
		if err != nil || d.Remaining != count-1 {
			t.Errorf("customer %s, by a right clock after the errors: %d used, %v, want 1", customer, count-d.Remaining, err)
		}
	}
}

// offBy bounds the error of a store's estimate of its server's clock.
const offBy = 2 * time.Second

func checkEdgeError(t *testing.T, e *headgate.EdgeError, words string, months calendar.Settings, earliest time.Time, skew time.Duration) {
	t.Helper()
	if at := e.At.Time(); at.Before(earliest.Add(-offBy)) || at.After(time.Now().Add(offBy)) {
		t.Errorf("the time of the store is %s, want %s", at, earliest)
	}
	if want := months.Edges(headgate.Month, earliest.Add(skew)); e.Edges != want {
		t.Errorf("the edges are %v, want %v", e.Edges, want)
	}
	difference, nearest := e.Edges[0].Sub(e.At), e.Edges[0]
	if skew < 0 {
		difference, nearest = e.At.Sub(e.Edges[3]), e.Edges[3]
	}
	want := difference.String() + " " + words + nearest.Time().Format(time.RFC3339Nano)
	if difference <= 0 || !strings.Contains(e.Error(), want) {
		t.Errorf("got %q, want %q in it", e.Error(), want)
	}
}
