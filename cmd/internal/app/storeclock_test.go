package app

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestStoreClockIsWrong: the clock of a real Redis is 100 days ahead. The limit without a calendar is decided, and the month
// by its fallback. The log (once), the metrics and the status name the difference of the clocks.
func TestStoreClockIsWrong(t *testing.T) {
	t.Parallel()
	const ahead = 100 * 24 * time.Hour
	store := redis.StartAhead(t, ahead)
	var log logs.Text
	o := serverOptions(t, "store_timeout: 5s\nrules:\n- {name: plain, key: [all], limits: [3/300d], algorithm: fixed_window}\n"+
		"- {name: month, key: [all], limits: [1000/month], algorithm: fixed_window, fallback: allow}\n"+
		"server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}\nstore: redis://"+store.Addr)
	o.Log = log.Logger()
	i := startServer(t, o)
	at := i.Addresses()
	eventually(t, "the store", func() bool { return serving(t, at.GRPC, "ratelimit") })
	var verdicts []string
	for range 5 {
		verdicts = append(verdicts, verdictOf(t, at.HTTP))
	}
	if got := strings.Join(verdicts, ""); got != strings.Repeat("allow", 3)+strings.Repeat("deny", 2) {
		t.Errorf("the verdicts are %s, want those of 3/300d", got)
	}
	if text := log.Take(); strings.Count(text, "the clock of the store is wrong") != 1 || !strings.Contains(text, "store_ahead=2400h0m0s") {
		t.Errorf("want one line that names the difference of 2400h, got\n%s", text)
	}
	s := i.Status().Store
	if s.ClockErrors < 3 || s.ClockErrors > 5 || // A refusal may come from memory.
		math.Abs(s.Nodes[0].ClockAheadSeconds-ahead.Seconds()) > 60 || s.Nodes[0].State != "closed" {
		t.Errorf("the status is %+v", s)
	}
	if _, text := get(t, at.Admin+"/metrics"); !strings.Contains(text, fmt.Sprint("headgate_store_clock_errors_total ", s.ClockErrors)) ||
		!strings.Contains(text, `headgate_store_clock_offset_seconds{node="`+store.Addr+`"} 8.6`) {
		t.Errorf("the metrics lack the difference of the clocks:\n%s", text)
	}
}

// verdictOf asks for a decision.
func verdictOf(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Post("http://"+address+"/v1/decide", "application/json", strings.NewReader(`{"path": "/"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Verdict string `json:"verdict"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return answer.Verdict
}
