package reference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// pair is the reference and Headgate with the same limits.
type pair struct {
	reference, headgate ratelimitv3.RateLimitServiceClient
}

// startPair starts both servers with a file.
func startPair(t *testing.T, p programs, s scenario, text string) pair {
	t.Helper()
	root := t.TempDir()
	folder := filepath.Join(root, "config")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(folder, "d.yaml"), text)
	return pair{startReference(t, p.reference, root, s.environment...).client, startHeadgate(t, p.headgate, folder, s.settings)}
}

// one is a request with a descriptor of one entry, twice if twice is set.
func one(hits uint64, key, value string, twice bool) *ratelimitv3.RateLimitRequest {
	d := &commonv3.RateLimitDescriptor{
		Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}, HitsAddend: wrapperspb.UInt64(hits),
	}
	req := &ratelimitv3.RateLimitRequest{Domain: "d", Descriptors: []*commonv3.RateLimitDescriptor{d}}
	if twice {
		req.Descriptors = append(req.Descriptors, d)
	}
	return req
}

// withLimit sends a limit with the descriptors of a request.
func withLimit(req *ratelimitv3.RateLimitRequest, unit typev3.RateLimitUnit) *ratelimitv3.RateLimitRequest {
	for _, d := range req.GetDescriptors() {
		d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 9, Unit: unit}
	}
	return req
}

// multiplied sends a limit of one request in twelve months.
func multiplied() *ratelimitv3.RateLimitRequest {
	req := one(1, "k", "v", false)
	req.Descriptors[0].Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{
		RequestsPerUnit: 1, Unit: typev3.RateLimitUnit_MONTH, UnitMultiplier: wrapperspb.UInt32(12),
	}
	return req
}

// brief is the answer of a server: its statuses, or the code and the text of its error.
func brief(t *testing.T, c ratelimitv3.RateLimitServiceClient, req *ratelimitv3.RateLimitRequest) string {
	t.Helper()
	got, err := c.ShouldRateLimit(t.Context(), req)
	if err != nil {
		return grpcstatus.Code(err).String() + ": " + grpcstatus.Convert(err).Message()
	}
	var parts []string
	for _, s := range got.GetStatuses() {
		parts = append(parts, statusText(s))
	}
	return strings.Join(parts, "; ")
}

// exchange is one request, and the answers of the servers.
type exchange struct {
	name                string // of the difference; "" if the answers are the same
	req                 *ratelimitv3.RateLimitRequest
	reference, headgate string
}

func (p pair) run(t *testing.T, all []exchange) {
	t.Helper()
	for i, e := range all {
		if got := brief(t, p.reference, e.req); got != e.reference {
			t.Errorf("request %d: the reference answers %q, want %q", i, got, e.reference)
		}
		if got := brief(t, p.headgate, e.req); got != e.headgate {
			t.Errorf("request %d: headgate answers %q, want %q", i, got, e.headgate)
		}
		if same := e.reference == e.headgate; same != (e.name == "") {
			t.Errorf("request %d has the difference %q, and the answers are the same: %t", i, e.name, same)
		}
	}
}

// TestDifferences shows the differences that the random requests avoid. The limits last a year, so
// that no window ends between two requests.
func TestDifferences(t *testing.T) {
	p, s := buildAll(t), scenarios()
	t.Run("usual", func(t *testing.T) {
		startPair(t, p, s[0], `domain: d
descriptors:
  - {key: a_b, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: a, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: k, value: x*, share_threshold: true, rate_limit: {unit: year, requests_per_unit: 5}}
`).run(t, []exchange{
			{"", one(1, "a_b", "c", false), `OK 5/YEAR "", 4 remain`, `OK 5/YEAR "", 4 remain`},
			{keyCollision, one(1, "a", "b_c", false), `OK 5/YEAR "", 3 remain`, `OK 5/YEAR "", 4 remain`},
			{"", one(1, "k", "xy", false), `OK 5/YEAR "", 4 remain`, `OK 5/YEAR "", 4 remain`},
			{keyCollision, withLimit(one(1, "k", "x*", false), typev3.RateLimitUnit_YEAR), `OK 9/YEAR "", 7 remain`, `OK 9/YEAR "", 8 remain`},
			{multiplier, multiplied(), `OK 1/MONTH "", 0 remain`, `OK 1/UNKNOWN "1/360d", 0 remain`},
			{
				errorCodes, &ratelimitv3.RateLimitRequest{Descriptors: one(1, "a", "b", false).GetDescriptors()},
				"Unknown: rate limit domain must not be empty", "InvalidArgument: rate limit domain must not be empty",
			},
			{
				errorCodes, &ratelimitv3.RateLimitRequest{Domain: "d"},
				"Unknown: rate limit descriptor list must not be empty", "InvalidArgument: rate limit descriptor list must not be empty",
			},
		})
	})
	t.Run("stop increment", func(t *testing.T) {
		startPair(t, p, s[1], "domain: d\ndescriptors: [{key: k, rate_limit: {unit: year, requests_per_unit: 5}}]\n").run(t, []exchange{
			{
				stopSameCounter, &ratelimitv3.RateLimitRequest{
					Domain: "d", Descriptors: append(one(3, "k", "a", true).GetDescriptors(), one(1, "k", "b", false).GetDescriptors()...),
				},
				`OK 5/YEAR "", 2 remain; OVER_LIMIT 5/YEAR "", 0 remain; OK 5/YEAR "", 4 remain`,
				`OK 5/YEAR "", 2 remain; OVER_LIMIT 5/YEAR "", 0 remain; OK 5/YEAR "", 5 remain`,
			},
			{"", one(0, "k", "a", false), `OVER_LIMIT 5/YEAR "", 0 remain`, `OVER_LIMIT 5/YEAR "", 0 remain`},
			{stopSameCounter, one(0, "k", "b", false), `OK 5/YEAR "", 4 remain`, `OK 5/YEAR "", 5 remain`},
		})
	})
	t.Run("a sent limit without a unit", func(t *testing.T) { unknownUnit(t, p) })
}

// unknownUnit sends a limit with the unit UNKNOWN: the reference ends.
func unknownUnit(t *testing.T, p programs) {
	t.Helper()
	both := startPair(t, p, scenarios()[0], "domain: d\n")
	req := func() *ratelimitv3.RateLimitRequest {
		return withLimit(one(1, "k", "v", false), typev3.RateLimitUnit_UNKNOWN)
	}
	if got := brief(t, both.reference, req()); !strings.HasPrefix(got, codes.Unavailable.String()) {
		t.Errorf("the reference answers %q, want the end of the connection", got)
	}
	const want = "InvalidArgument: descriptor 0: the unit of its limit is UNKNOWN: send SECOND, MINUTE, HOUR, DAY, MONTH or YEAR"
	if got := brief(t, both.headgate, req()); got != want {
		t.Errorf("headgate answers %q, want %q", got, want)
	}
	if got := brief(t, both.headgate, one(1, "k", "v", false)); !strings.HasPrefix(got, "OK") {
		t.Errorf("after that, headgate answers %q, want OK", got)
	}
}
