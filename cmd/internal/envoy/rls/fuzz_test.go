package rls

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// maxAnswerTime bounds the time of one answer. It is long, because the machine may be busy.
const maxAnswerTime = 20 * time.Second

// fuzzBurst is the burst of the bucket in the tree of fuzzed.
const fuzzBurst = 7

// fuzzed is a service with a tree of all kinds of limits, and with rules for the domain "rules". Its
// clock stands still.
func fuzzed(t *testing.T, settings byte) *Service {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: func() headgate.Instant { return headgate.Instant(1_699_999_990 * time.Second) }})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{
		Store: store, Domains: []guard.Domain{{Name: "d", Descriptors: fuzzedTree()}}, MaxSentLimits: 4, Rules: fuzzedRules(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(g, fuzzedOptions(settings), 3)
}

// fuzzedOptions has one option for each bit.
func fuzzedOptions(settings byte) Options {
	o := Options{
		ShadowMode: settings&1 != 0, QuotaMode: settings&2 != 0, StopIncrement: settings&4 != 0, Metadata: settings&8 != 0,
	}
	if settings&16 != 0 {
		o.Headers = Headers{Limit: "limit", Remaining: "remaining", Reset: "reset"}
	}
	return o
}

func fuzzedTree() []guard.Descriptor {
	window := func(count int64, change func(*guard.Leaf)) *guard.Leaf {
		l := &guard.Leaf{Policies: []headgate.Policy{{
			Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Per: time.Hour}, CountRejected: true, CountAll: true,
		}}}
		change(l)
		return l
	}
	bucket := &guard.Leaf{Name: "bucket", Policies: []headgate.Policy{{
		Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 60, Per: time.Minute, Burst: fuzzBurst},
	}}}
	return []guard.Descriptor{
		{Key: "k", Leaf: window(5, func(*guard.Leaf) {}), Descriptors: []guard.Descriptor{
			{Key: "k", Value: "*a*b*", ShareThreshold: true, Leaf: window(3, func(l *guard.Leaf) { l.QuotaMode = true })},
			{Key: "k", Value: strings.Repeat("*", maxText), Leaf: window(0, func(l *guard.Leaf) { l.Mode = guard.Shadow })},
		}},
		{Key: "bucket", Leaf: bucket},
		{Key: "free", Leaf: &guard.Leaf{Unlimited: true, Replaces: []string{"bucket"}}},
		{Key: "wide", ValueToMetric: true, Leaf: window(math.MaxUint32+1, func(*guard.Leaf) {})},
	}
}

// fuzzedRules limits the descriptors of the domain "rules" by their entry k.
func fuzzedRules(t *testing.T) []guard.Rule {
	t.Helper()
	part, err := rule.ParsePart("descriptor:k")
	if err != nil {
		t.Fatal(err)
	}
	return []guard.Rule{{
		Rule:     rule.Rule{Name: "r", Match: rule.Match{Domain: "rules"}, Key: []rule.Part{part}},
		Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 3, Per: time.Minute, Burst: 3}}},
	}}
}

// seeds are requests of all kinds.
func seeds() []*ratelimitv3.RateLimitRequest {
	value := func(hits uint64, pairs ...string) *commonv3.RateLimitDescriptor {
		d := &commonv3.RateLimitDescriptor{HitsAddend: wrapperspb.UInt64(hits)}
		for i := 0; i < len(pairs); i += 2 {
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
		}
		return d
	}
	request := func(domain string, all ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
		return &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: all}
	}
	sent, back := value(2, "k", "v"), value(3, "k", "v")
	sent.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3, Unit: typev3.RateLimitUnit_HOUR}
	back.IsNegativeHits = true
	return []*ratelimitv3.RateLimitRequest{
		request("d", value(0, "k", "v"), value(1, "k", "v"), value(9, "k", "v")),
		request("d", sent, back, value(headgate.MaxUnits, "k", "v"), value(headgate.MaxUnits, "k", "v")),
		request("d", value(1, "k", "v", "k", "xaxbx"), value(1, "k", "v", "k", "aaaa"), value(1, "k", "w", "k", "aaaab")),
		request("d", value(9, "bucket", ""), value(1, "free", "v"), value(1, "wide", "v")),
		request("d", value(math.MaxUint64, "k", "v")),
		request("rules", value(2, "k", "v"), value(2, "k", "v"), value(1, "l", "v")),
		request("unknown", value(1, "k", "v")), request("", value(1, "k", "v")), request("d"), request("d", value(1)), request("d", value(1, "", "v")),
		request("d", slices.Repeat([]*commonv3.RateLimitDescriptor{value(1, "k", "v")}, 10)...),
	}
}

// FuzzRequest decodes and decides a message of gRPC. It checks that an answer comes in bounded time,
// that each descriptor has a status, and that no count is below 0 or above its bound.
func FuzzRequest(f *testing.F) {
	for i, seed := range seeds() {
		text, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, byte(i*5))
	}
	f.Add([]byte("\x0a\x01\xff"), byte(0))                                     // The domain is no UTF-8.
	f.Add([]byte("\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01\xff"), byte(0))   // The value is no UTF-8.
	f.Add([]byte("\x0a\x01d\x12\x0a\x0a\x08\x0a\x01k\x12\x03a\xc3("), byte(8)) // A value ends within a rune.
	f.Add([]byte("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), byte(0))     // The length is above the message.
	f.Fuzz(func(t *testing.T, text []byte, settings byte) {
		if len(text) > MaxMessage {
			return // The server refuses it.
		}
		s := fuzzed(t, settings)
		began := time.Now()
		answer, err := s.handle(nil, t.Context(), func(m any) error { return m.(rpc.Request).Decode(text) }, nil)
		if elapsed := time.Since(began); elapsed > maxAnswerTime {
			t.Fatalf("the answer took %v, want at most %v", elapsed, maxAnswerTime)
		}
		req := &ratelimitv3.RateLimitRequest{}
		if failed := proto.Unmarshal(text, req); failed != nil {
			if err == nil {
				t.Fatalf("got %v for bytes that are no message: %v", answer, failed)
			}
			return
		}
		if err != nil {
			checkError(t, err)
			return
		}
		response := &ratelimitv3.RateLimitResponse{}
		if err := proto.Unmarshal(answer.(*rpc.Response).Encoded(), response); err != nil {
			t.Fatalf("the answer cannot be decoded: %v", err)
		}
		checkStatuses(t, req, response)
		checkCounts(t, s, req)
	})
}

// checkError checks the code of a call that was refused. No store failed.
func checkError(t *testing.T, err error) {
	t.Helper()
	if code := status.Code(err); code != codes.InvalidArgument && code != codes.ResourceExhausted {
		t.Errorf("%v, want INVALID_ARGUMENT or RESOURCE_EXHAUSTED", err)
	}
}

// checkStatuses checks that each descriptor has a status within its limit.
func checkStatuses(t *testing.T, req *ratelimitv3.RateLimitRequest, got *ratelimitv3.RateLimitResponse) {
	t.Helper()
	if len(got.GetStatuses()) != len(req.GetDescriptors()) {
		t.Fatalf("%d statuses for %d descriptors", len(got.GetStatuses()), len(req.GetDescriptors()))
	}
	for i, s := range got.GetStatuses() {
		if c := s.GetCode(); c != ratelimitv3.RateLimitResponse_OK && c != ratelimitv3.RateLimitResponse_OVER_LIMIT {
			t.Errorf("descriptor %d has the code %s", i, c)
		}
		l := s.GetCurrentLimit()
		if l == nil {
			continue
		}
		if s.GetLimitRemaining() > l.GetRequestsPerUnit() {
			t.Errorf("descriptor %d: %d of %d remain", i, s.GetLimitRemaining(), l.GetRequestsPerUnit())
		}
		if reset := s.GetDurationUntilReset().AsDuration(); reset < 0 || reset > year {
			t.Errorf("descriptor %d: the reset is in %v", i, reset)
		}
	}
}

// checkCounts gives back all hits that a counter can have. Then every limit has all its requests: a
// count above the bound, or below 0, would show.
func checkCounts(t *testing.T, s *Service, req *ratelimitv3.RateLimitRequest) {
	t.Helper()
	if req.GetDomain() != "d" {
		return // Rules are checked by the tests of guard.
	}
	s.SetOptions(Options{})
	var got *ratelimitv3.RateLimitResponse
	for _, hits := range []uint64{headgate.MaxUnits, 0} {
		for _, d := range req.GetDescriptors() {
			d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(hits), hits > 0
		}
		var err error
		if got, err = s.ShouldRateLimit(t.Context(), req); err != nil {
			checkError(t, err)
			return
		}
	}
	for i, s := range got.GetStatuses() {
		l := s.GetCurrentLimit()
		want := l.GetRequestsPerUnit()
		if l.GetName() == "bucket" {
			want = fuzzBurst
		}
		if l != nil && s.GetLimitRemaining() != want {
			t.Errorf("descriptor %d, after all hits were given back: %d remain, want %d", i, s.GetLimitRemaining(), want)
		}
	}
}

// FuzzJSON sends a body to /json.
func FuzzJSON(f *testing.F) {
	for i, seed := range seeds() {
		text, err := protojson.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, byte(i*5))
	}
	f.Add([]byte("{\"domain\": \"\xff\"}"), byte(0))
	f.Add([]byte(`{"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "\ud800"}]}]}`), byte(0))
	f.Add([]byte(strings.Repeat(`{"descriptors":[`, 100)), byte(0))
	f.Fuzz(func(t *testing.T, body []byte, settings byte) {
		s := fuzzed(t, settings)
		w := httptest.NewRecorder()
		began := time.Now()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/json", bytes.NewReader(body)))
		if elapsed := time.Since(began); elapsed > maxAnswerTime {
			t.Fatalf("the answer took %v, want at most %v", elapsed, maxAnswerTime)
		}
		req, got := &ratelimitv3.RateLimitRequest{}, &ratelimitv3.RateLimitResponse{}
		failed := protojson.Unmarshal(body, req)
		switch w.Code {
		case http.StatusOK, http.StatusTooManyRequests:
			if err := protojson.Unmarshal(w.Body.Bytes(), got); err != nil || failed != nil {
				t.Fatalf("the answer is %q: %v, after the request %v", w.Body, err, failed)
			}
			if over := got.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT; over != (w.Code == http.StatusTooManyRequests) {
				t.Errorf("status %d for %s", w.Code, got.GetOverallCode())
			}
			checkStatuses(t, req, got)
			checkCounts(t, s, req)
		case http.StatusServiceUnavailable: // The store has no capacity for a further limit.
			if failed != nil {
				t.Errorf("status 503 for %q: %v", body, failed)
			}
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		default:
			t.Errorf("status %d", w.Code)
		}
	})
}
