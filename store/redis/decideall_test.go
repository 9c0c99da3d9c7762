package redis_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/rule"
)

// scriptCalls gives the number of script calls that a server has run.
func scriptCalls(t *testing.T, server *testserver.Server) int {
	t.Helper()
	total := 0
	for _, calls := range regexp.MustCompile(`cmdstat_(?:evalsha|eval|fcall):calls=(\d+)`).FindAllStringSubmatch(server.CLI("INFO", "commandstats"), -1) {
		n, err := strconv.Atoi(calls[1])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

// TestDecideAllIsOneCall: a hundred requests take one script call. A repeated client sees the
// units that its earlier requests took.
func TestDecideAllIsOneCall(t *testing.T) {
	server := testserver.Start(t)
	client, err := rule.ParsePart("path")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: newStore(t, server.Addr, nil), Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "all", Key: []rule.Part{client}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 3, Per: time.Hour}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	requests, answers := make([]headgate.Request, 100), make([]guard.Answer, 100)
	for i := range requests {
		requests[i].Path = "/" + strconv.Itoa(i%25) // Each path comes four times.
	}
	g.DecideAll(t.Context(), requests[:1], answers[:1]) // This call loads the script.
	before := scriptCalls(t, server)
	g.DecideAll(t.Context(), requests, answers)
	if calls := scriptCalls(t, server) - before; calls != 1 {
		t.Errorf("100 requests took %d script calls, want 1", calls)
	}
	for i := range answers {
		want := headgate.Allow
		if i >= 75 || i == 50 { // The first client had one request before.
			want = headgate.Deny
		}
		if a := &answers[i]; a.Error != nil || a.StoreError != nil || a.Verdict != want {
			t.Errorf("request %d: got %v with the errors %v and %v, want %v without errors", i, a.Verdict, a.Error, a.StoreError, want)
		}
	}
}
