package retryafter

import (
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/testkit/decisions"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const day = 24 * time.Hour

// row is one refusal, and what the fronts must say.
type row struct {
	name   string
	reason headgate.Reason
	wait   time.Duration
	// field is Retry-After, and "" without one. It is rounded up, at least 1 and at most a day. text has the exact seconds of texts
	// and of RateLimit.
	field, text string
	// delay is the time for programs, at most a day. It is 0 for a refusal that waiting does not help.
	delay time.Duration
	// pushback is in milliseconds, and -1 above one minute.
	pushback string
	// cell has the two times of CL.THROTTLE, until a retry and until the reset. As redis-cell documents, they are rounded up from
	// whole milliseconds. throttle has those of THROTTLE, rounded down, as throttlecrab documents.
	cell, throttle string
	// reset is that of Envoy's service: whole seconds, at least 1. A Duration has no whole second above its maximum.
	reset time.Duration
}

// TestFronts compares all fronts on one list of times. Only the Redis protocol and the exact forms differ from Retry-After.
func TestFronts(t *testing.T) {
	t.Parallel()
	const over, most = headgate.OverLimit, math.MaxInt64
	for _, r := range []row{
		{"0", over, 0, "*", "1", 0, "*", "0 0", "0 0", time.Second},
		{"1 ns", over, 1, "1", "1", 1, "1", "0 0", "0 0", time.Second},
		{"999 ms", over, 999 * time.Millisecond, "1", "1", 999 * time.Millisecond, "999", "1 1", "0 0", time.Second},
		{"1 s", over, time.Second, "1", "1", time.Second, "1000", "1 1", "1 1", time.Second},
		{"1.0001 s", over, time.Second + 100*time.Microsecond, "2", "2", time.Second + 100*time.Microsecond, "1001", "1 1", "1 1", 2 * time.Second},
		{"a ban", headgate.Banned, 90500 * time.Millisecond, "91", "91", 90500 * time.Millisecond, "-1", "91 91", "90 90", 91 * time.Second},
		{"never", headgate.Never, 0, "", "", 0, "-1", "-1 0", "-1 0", time.Second},
		{"30 days", over, 30 * day, "86400", "2592000", day, "-1", "2592000 2592000", "2592000 2592000", 30 * day},
		{"the longest", over, most, "86400", "9223372037", day, "-1", "9223372037 9223372037", "9223372036 9223372036", time.Duration(most).Truncate(time.Second)},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.checkHTTP(t)
			r.checkCalls(t)
			r.checkServer(t)
		})
	}
}

// expect compares one value of a front.
func expect[T comparable](t *testing.T, front string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s says %v, want %v", front, got, want)
	}
}

// spread replaces the wait of a refusal without a time: 1 s or 2 s, by chance.
func (r *row) spread(got string) string {
	if r.field == "*" && slices.Contains([]string{"1", "2", "1000", "2000"}, got) {
		return "*"
	}
	return got
}

// spreadDelay does the same for a time.
func (r *row) spreadDelay(got time.Duration) time.Duration {
	if r.field == "*" && (got == time.Second || got == 2*time.Second) {
		return 0
	}
	return got
}

// checkHTTP compares what answers over HTTP say, and the daemon's limits of callers.
func (r *row) checkHTTP(t *testing.T) {
	t.Helper()
	h := middleware(guardOn(t, &refusing{r.reason, r.wait}))
	w := request(h, http.MethodGet, "/", "")
	expect(t, "httplimit", r.spread(w.Header().Get("Retry-After")), r.field)
	if r.field != "" {
		text := r.text
		if r.field == "*" { // One draw is in all parts of an answer.
			text = w.Header().Get("Retry-After")
		}
		expect(t, "the problem document", strings.Contains(w.Body.String(), ": retry in "+text+" s."), true)
		expect(t, "RateLimit", w.Header().Get("RateLimit"), `"requests";r=0;t=`+text)
		busy := httptest.NewRecorder()
		access.RefuseHTTP(busy, &access.BusyError{RetryAfter: r.wait})
		expect(t, "access", busy.Header().Get("Retry-After"), strings.Replace(r.field, "*", "1", 1))
	}
	w = request(h, http.MethodPost, "/s/m", "{}", "Content-Type", "application/json", "Connect-Protocol-Version", "1")
	expect(t, "Connect", r.spread(w.Header().Get("Retry-After")), r.field)
	exact, whole := decided(t, guardOn(t, &refusing{r.reason, r.wait}))
	expect(t, "GET /v1/decide", r.spread(whole), r.field)
	want := ""
	if r.wait > 0 {
		want = strconv.FormatFloat(min(r.wait, day).Seconds(), 'f', -1, 64)
	}
	expect(t, "POST /v1/decide", exact, want)
}

// checkCalls compares what calls of gRPC get.
func (r *row) checkCalls(t *testing.T) {
	t.Helper()
	g := guardOn(t, &refusing{r.reason, r.wait})
	w := request(middleware(g), http.MethodPost, "/s/m", "", "Content-Type", "application/grpc")
	expect(t, "gRPC over net/http", r.spread(w.Header().Get("Retry-After")), r.field)
	expect(t, "gRPC over net/http, pushback", r.spread(w.Header().Get("Grpc-Retry-Pushback-Ms")), r.pushback)
	info := retryInfo(t, statusIn(t, w.Header()))
	expect(t, "gRPC over net/http, RetryInfo", r.spreadDelay(info), r.delay)
	delay, pushback := intercepted(t, g)
	if r.field == "*" {
		expect(t, "gRPC over net/http, RetryInfo and pushback", info, milliseconds(t, w.Header().Get("Grpc-Retry-Pushback-Ms")))
		expect(t, "grpclimit, RetryInfo and pushback", delay, milliseconds(t, pushback))
	}
	expect(t, "grpclimit, pushback", r.spread(pushback), r.pushback)
	expect(t, "grpclimit, RetryInfo", r.spreadDelay(delay), r.delay)
}

func milliseconds(t *testing.T, text string) time.Duration {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Error(err)
	}
	return time.Duration(n) * time.Millisecond
}

// checkServer compares the protocols of headgate server.
func (r *row) checkServer(t *testing.T) {
	t.Helper()
	g := guardOn(t, &refusing{r.reason, r.wait})
	expect(t, "Envoy's service", until(t, g), r.reset)
	cell, throttle, exact := overRedis(t, g)
	expect(t, "CL.THROTTLE", cell, r.cell)
	expect(t, "THROTTLE", throttle, r.throttle)
	expect(t, "HG.DECIDE", exact, strconv.FormatFloat(r.wait.Seconds(), 'f', -1, 64))
	k, err := client.New(client.Config{Servers: []string{decisions.Start(t, g, "").At}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	a, err := k.Decide(t.Context(), &client.Request{Path: "/"})
	if err != nil || a.Local {
		t.Fatal(a, err)
	}
	expect(t, "headgate.v1", a.RetryAfter, r.wait)
}
