package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// newcomerCycle is long, so that a busy machine can send the requests of a tenth of a cycle.
const newcomerCycle = 10 * time.Second

// newcomerVisit is what a fifth client got beside four clients that had used the capacity.
type newcomerVisit struct {
	first time.Duration // from its first request to its first admitted request
	tenth int           // units within a tenth of a cycle
	retry string        // the last Retry-After
	after shareTable    // the shares a tenth of a cycle later
}

// visit has four clients use all 40 units just after a cycle began, and a fifth one come a moment
// later. It reports false if a cycle ended in between.
func visit(t *testing.T, i *instance) (v newcomerVisit, whole bool) {
	t.Helper()
	began := nextCycle(t, i)
	passed := burst(t, i, map[string]int64{"A": 10, "B": 10, "C": 10, "D": 10})
	<-time.After(newcomerCycle / 20)
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	arrived := time.Now()
	for {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.Proxy+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Client-Id", "new")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		since := time.Since(arrived)
		if resp.StatusCode == http.StatusOK {
			if v.tenth++; v.tenth == 1 {
				v.first = since
			}
		} else {
			v.retry = resp.Header.Get("Retry-After")
		}
		if since > newcomerCycle/10+newcomerCycle/20 {
			break
		}
		<-time.After(newcomerCycle / 500)
	}
	v.after = askShares(t, i)
	if passed["A"]+passed["B"]+passed["C"]+passed["D"] != 40 {
		t.Fatalf("%v requests of the four clients passed, want 40", passed)
	}
	return v, v.after.Cycle == began.Cycle
}

// TestNewcomerAtTheProxy has a fifth client come after four clients used the whole capacity. With a
// trusted name it is admitted within a tenth of a cycle and gets its default share of 8, and the service
// gets at most 48 requests in a cycle. With a name that it could have invented it waits.
func TestNewcomerAtTheProxy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, settings string
		trusted        bool
	}{
		{"trusted names", "capacity: 40, cycle: 10s, trusted_names: true", true},
		{"trusted names, next_cycle", "capacity: 40, cycle: 10s, trusted_names: true, reclaim: next_cycle", true},
		{"invented names", "capacity: 40, cycle: 10s", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			behind := httptest.NewServer(page())
			t.Cleanup(behind.Close)
			for range retellings {
				i := start(t, fmt.Sprintf(fairShareConfiguration, c.settings), behind.URL)
				burst(t, i, map[string]int64{"A": 1, "B": 1, "C": 1, "D": 1})
				v, whole := visit(t, i)
				i.stop()
				if !whole {
					continue
				}
				t.Logf("first admitted after %v, %d units, %d of 40 in the cycle, Retry-After %s", v.first, v.tenth, v.after.Admitted, v.retry)
				switch {
				case !c.trusted && (v.tenth != 0 || v.after.Admitted > 40):
					t.Errorf("an invented name gets %d units and the service %d, want 0 and 40", v.tenth, v.after.Admitted)
				case c.trusted && (v.tenth != 8 || v.first > newcomerCycle/10 || v.after.Admitted != 48):
					t.Errorf("the newcomer is admitted after %v and gets %d units, and the service %d; want at most 1s, 8 and 48", v.first, v.tenth, v.after.Admitted)
				}
				return
			}
			t.Fatalf("a cycle ended in each of %d tries", retellings)
		})
	}
}
