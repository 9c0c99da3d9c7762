package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/guard"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// planned is a configuration of a proxy with two plans. With lasting, no window ends during a test.
const planned = `version: 1
max_memory: 16MiB
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls, cost: "header:X-Cost"}
default_plan: free
plans:
  free:
    quotas: {api_calls: [{limit: 5/365d, soft: 60%%}]}
  paid:
    after: meter
    quotas: {api_calls: [{limit: 200/365d, hard: 300}]}
customers:
  acme: {plan: paid}
  careful: {plan: paid, hard: {api_calls: 210}}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

func upstreamOfQuotas(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	return server.URL
}

// spend sends a request of a customer, and gives its status, its metered units and its warning.
func spend(t *testing.T, i *instance, customer string, cost int) (status, metered int, warning string) {
	t.Helper()
	r, _ := get(t, "http://"+i.Proxy+"/", "X-Customer", customer, "X-Cost", strconv.Itoa(cost))
	if text := r.Header.Get("Headgate-Metered"); text != "" {
		var err error
		if metered, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return r.StatusCode, metered, r.Header.Get("Headgate-Warning")
}

// TestQuotas: a free customer is warned and then refused. A paid one has 200 included units and 37 metered ones, and one
// request is across the boundary. Another one has a spending limit.
func TestQuotas(t *testing.T) {
	t.Parallel()
	i := start(t, lasting(planned), upstreamOfQuotas(t))
	for n := range 6 {
		status, metered, warning := spend(t, i, "unlisted", 1)
		if refused := n == 5; refused != (status == http.StatusTooManyRequests) || metered != 0 || (warning != "") != (n == 3 || n == 4) {
			t.Errorf("free request %d: got %d, metered %d, warning %q", n, status, metered, warning)
		}
	}
	sum := 0
	for n, cost := range []int{190, 5, 7, 35} {
		status, metered, _ := spend(t, i, "acme", cost)
		if want := []int{0, 0, 2, 35}[n]; status != http.StatusOK || metered != want {
			t.Errorf("a paid request of %d: got %d, metered %d, want 200 and %d", cost, status, metered, want)
		}
		sum += metered
	}
	if sum != 37 {
		t.Errorf("got %d metered units, want 37", sum)
	}
	if status, _, _ := spend(t, i, "acme", 64); status != http.StatusTooManyRequests {
		t.Errorf("beyond the hard limit: got %d, want 429", status)
	}
	if status, metered, _ := spend(t, i, "careful", 210); status != http.StatusOK || metered != 10 {
		t.Errorf("at the spending limit: got %d, metered %d, want 200 and 10", status, metered)
	}
	if status, _, _ := spend(t, i, "careful", 1); status != http.StatusTooManyRequests {
		t.Errorf("above the spending limit: got %d, want 429", status)
	}
	if got := metric(t, i, `headgate_quota_metered_units_total{rule="api"}`); got != 47 {
		t.Errorf("the metric has %v metered units, want 47", got)
	}
	if got := metric(t, i, `headgate_quota_above_soft_total{rule="api"}`); got != 2 {
		t.Errorf("the metric has %v requests above the soft limit, want 2", got)
	}
	eventually(t, "the event of the soft limit", func() bool { return strings.Contains(i.text(), "soft limit exceeded") })
	if n := strings.Count(i.text(), "soft limit exceeded"); n != 1 {
		t.Errorf("the event was sent %d times, want once", n)
	}
}

// TestPlanChangesInTheWindow: a reload gives a customer another plan, and keeps what it used.
func TestPlanChangesInTheWindow(t *testing.T) {
	t.Parallel()
	i := start(t, lasting(planned), upstreamOfQuotas(t))
	if status, _, _ := spend(t, i, "grows", 5); status != http.StatusOK {
		t.Fatalf("the first request: got %d", status)
	}
	if status, _, _ := spend(t, i, "grows", 1); status != http.StatusTooManyRequests {
		t.Fatalf("above the free plan: got %d, want 429", status)
	}
	text, err := os.ReadFile(i.path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "  acme: {plan: paid}", "  grows: {plan: paid}", 1)
	if err := os.WriteFile(i.path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	i.hangup(t)
	if status, metered, _ := spend(t, i, "grows", 196); status != http.StatusOK || metered != 1 {
		t.Errorf("after the change: got %d, metered %d, want 200 and 1: 5 units were used before", status, metered)
	}
}

// TestRaiseEnds: a raise ends while the process runs, without a reload.
func TestRaiseEnds(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(3 * time.Second)
	raised := strings.Replace(planned, "  acme: {plan: paid}", "  acme: {raise: {limits: {api_calls: [{limit: 1000000/365d}]}, until: "+
		until.UTC().Format(time.RFC3339Nano)+"}}", 1)
	i := start(t, lasting(raised), upstreamOfQuotas(t))
	began := time.Now()
	status, _, _ := spend(t, i, "acme", 6)
	if ended := time.Now(); status != http.StatusOK && ended.Before(until) {
		t.Errorf("during the raise: got %d, want 200; it lasts %v after the request began", status, until.Sub(began))
	}
	eventually(t, "the end of the raise", func() bool {
		status, _, _ := spend(t, i, "acme", 1)
		return status == http.StatusTooManyRequests
	})
	if early := time.Until(until); early > 0 {
		t.Errorf("the raise ended %v early", early)
	}
}

const plannedServer = `version: 1
max_memory: 16MiB
%s
rules:
  - {name: http, match: {path: "/*"}, key: [header:X-Customer], quota: api_calls}
  - {name: rls, match: {domain: shop}, key: [descriptor:customer], quota: api_calls}
default_plan: paid
plans:
  paid:
    after: meter
    quotas: {api_calls: [{limit: 2/365d, hard: 1000}]}
server:
  grpc: "127.0.0.1:0"
  http: "127.0.0.1:0"
  resp: "127.0.0.1:0"
  rate_limit_service: {dynamic_metadata: true}
`

// meteredRLS asks Envoy's rate limit service.
func meteredRLS(t *testing.T, i *instance, customer string) int64 {
	t.Helper()
	answer, err := rateLimitClient(t, i.GRPC).ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
		Domain: "shop", HitsAddend: 5, Descriptors: []*commonv3.RateLimitDescriptor{
			{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "customer", Value: customer}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	fields := answer.GetDynamicMetadata().GetFields()
	one := fields["descriptors"].GetListValue().GetValues()[0].GetStructValue().GetFields()["metered"].GetNumberValue()
	if sum := fields["metered"].GetNumberValue(); sum != one {
		t.Errorf("the metadata has %v metered units, and %v of the descriptor, want the same", sum, one)
	}
	return int64(one)
}

// meteredClient asks headgate.v1.
func meteredClient(t *testing.T, i *instance, customer string) int64 {
	t.Helper()
	k, err := client.New(client.Config{Servers: []string{i.GRPC}, Timeout: patience, Fallback: guard.FallbackError})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.Close() }()
	a, err := k.Decide(t.Context(), &client.Request{Path: "/", Headers: map[string]string{"X-Customer": customer}, Cost: 5})
	if err != nil || a.Verdict != headgate.Allow {
		t.Fatalf("headgate.v1: %v, %v", a.Verdict, err)
	}
	return a.Metered
}

// meteredHTTP asks /v1/decide.
func meteredHTTP(t *testing.T, i *instance, customer string) int64 {
	t.Helper()
	body := fmt.Sprintf(`{"path":"/","headers":{"X-Customer":%q},"cost":5}`, customer)
	answer, err := http.Post("http://"+i.HTTP+"/v1/decide", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var decided struct {
		Metered int64  `json:"metered"`
		Reason  string `json:"reason"`
	}
	if err := json.Unmarshal(text, &decided); err != nil || decided.Reason != "metered" {
		t.Errorf("/v1/decide: %v: %s", err, text)
	}
	return decided.Metered
}

// meteredRESP asks HG.DECIDE.
func meteredRESP(t *testing.T, i *instance, customer string) int64 {
	t.Helper()
	text := redisCLI(t, i.RESP, "-3", "HG.DECIDE", "path=/", "header:X-Customer="+customer, "COST", "5")
	_, after, _ := strings.Cut(text, `"metered" => (integer) `)
	digits, _, _ := strings.Cut(after, "\n")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatalf("HG.DECIDE: %v\n%s", err, text)
	}
	return n
}

// TestMeteredInEveryWay: a request of 5 units with 2 left has 3 metered units, in every way in. A second one has 5: all
// ways share the customer's count. Two servers on one Redis share it too.
func TestMeteredInEveryWay(t *testing.T) {
	t.Parallel()
	redis := testserver.Start(t)
	settings := fmt.Sprintf(lasting(plannedServer), "store: redis://"+redis.Addr+"\nstore_timeout: 5s") + adminAnywhere
	servers := [...]*instance{launchServer(t, file(t, settings)), launchServer(t, file(t, settings))}
	ways := []struct {
		name string
		ask  func(*testing.T, *instance, string) int64
	}{
		{"rate limit service", meteredRLS}, {"headgate.v1", meteredClient}, {"/v1/decide", meteredHTTP}, {"HG.DECIDE", meteredRESP},
	}
	for n, way := range ways {
		customer := fmt.Sprint("customer-", n)
		if got := way.ask(t, servers[0], customer); got != 3 {
			t.Errorf("%s: got %d metered units, want 3", way.name, got)
		}
		if got := ways[(n+1)%len(ways)].ask(t, servers[1], customer); got != 5 {
			t.Errorf("%s after %s, on another server: got %d metered units, want 5", ways[(n+1)%len(ways)].name, way.name, got)
		}
	}
}

// TestCheckExplainsQuotas: check --explain names the customer and its plan.
func TestCheckExplainsQuotas(t *testing.T) {
	t.Parallel()
	path := file(t, fmt.Sprintf(planned, "http://127.0.0.1:9"))
	status, text, stderr := call(t, "check", "--config", path, "--explain", "GET /", "-H", "X-Customer: acme")
	if status != 0 || !strings.Contains(text, `"acme", plan paid; an entry`) {
		t.Errorf("status %d\n%s%s\nwant the customer and its plan", status, text, stderr)
	}
}
