package decisions

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/proto/wire"
	"github.com/headgate/headgate/internal/testkit/race"
)

// twin adds the requests of a message that generated types have decoded.
func twin(b *remote.Batch, m *headgatev1.DecideRequest) {
	for _, r := range m.GetRequests() {
		one := remote.Request{
			Method: r.GetMethod(), Host: r.GetHost(), Path: r.GetPath(), IP: r.GetIp(), Subject: r.GetSubject(), Domain: r.GetDomain(), Cost: r.GetCost(),
		}
		for name, value := range r.GetHeaders() {
			one.Headers = append(one.Headers, headgate.DescriptorEntry{Name: name, Value: value})
		}
		for name, value := range r.GetCookies() {
			one.Cookies = append(one.Cookies, headgate.DescriptorEntry{Name: name, Value: value})
		}
		for _, d := range r.GetDescriptors() {
			one.Descriptors = append(one.Descriptors, headgate.DescriptorEntry{Name: d.GetKey(), Value: d.GetValue()})
		}
		b.Add(&one)
	}
}

// repeats reports whether a request names a header or a cookie twice. A map keeps one of them.
func repeats(b []byte, m *headgatev1.DecideRequest) bool {
	i, found := 0, false
	wire.EachMessage(b, 1, func(request []byte) {
		entries := 0
		for _, field := range []protowire.Number{5, 6} {
			wire.EachMessage(request, field, func([]byte) { entries++ })
		}
		found = found || entries != len(m.GetRequests()[i].GetHeaders())+len(m.GetRequests()[i].GetCookies())
		i++
	})
	return found
}

// FuzzDecode compares the reader of messages with the generated types: both accept the same messages, and
// the decisions on them are the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	for _, m := range []*headgatev1.DecideRequest{
		{Requests: requestsFor("/a/b", "/header", "/a/../cost")},
		{Requests: requestsFor(slices.Repeat([]string{"/a/b", "/header", "/a/../cost"}, maxPart)...)}, // It has several parts.
		{Requests: []*headgatev1.Request{{
			Method: "PUT", Host: "api.example.com", Path: "/xff", Ip: "10.0.0.1", Subject: "CN=a", Domain: "shop", Cost: 3,
			Headers: map[string]string{"X-Forwarded-For": "1.2.3.4", "x-client-id": "a"}, Cookies: map[string]string{"id": "b"},
			Descriptors: []*headgatev1.Descriptor{{Key: "tenant", Value: "a"}, {Key: "tenant"}},
		}}},
		{Returns: []*headgatev1.Return{{Message: 3, Indexes: []uint32{1, 2, 300}}}},
	} {
		encoded, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Add([]byte{0x12, 0x04, 0x10, 0x01, 0x10, 0x02})                                    // returns that are not packed
	f.Add([]byte{0x0a, 0x03, 0x0a, 0x01, 0xff})                                          // invalid UTF-8
	ours, theirs := New(guards.New(f, everyField), Options{}), guards.New(f, everyField) // Both count the same.
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(headgatev1.DecideRequest)
		want := proto.Unmarshal(b, m)
		if len(m.GetRequests()) > maxRequests || want == nil && repeats(b, m) {
			return
		}
		c := ours.call(t.Context(), nil, nil)
		if err := c.Decode(b); err != nil || (c.fault != nil) != (want != nil) && len(c.returns) < maxStreamReceipts {
			t.Fatalf("%x: got %v, %v, generated types %v", b, err, c.fault, want)
		}
		if want != nil {
			return
		}
		returns := 0
		for _, r := range m.GetReturns() {
			for _, index := range r.GetIndexes() {
				if c.returns[returns] != (place{r.GetMessage(), index}) {
					t.Errorf("%x: return %d is %+v, want %d of %d", b, returns, c.returns[returns], index, r.GetMessage())
				}
				returns++
			}
		}
		var batch remote.Batch
		batch.Begin(theirs, nil, false)
		twin(&batch, m)
		if c.n != batch.Len() || len(c.returns) != returns {
			t.Fatalf("%x: %d requests and %d returns, want %d and %d", b, c.n, len(c.returns), batch.Len(), returns)
		}
		batch.Decide(t.Context())
		done := 0
		c.decide(func(part *remote.Batch) {
			for i := range part.Len() {
				var got, same remote.Answer
				err, twin := part.Answer(i, &got), batch.Answer(done+i, &same)
				if (err != nil) != (twin != nil) || err == nil && (got.Verdict != same.Verdict || got.Policy != same.Policy || got.Remaining != same.Remaining) {
					t.Errorf("%x: request %d gets %+v, %v, want %+v, %v", b, done+i, got, err, same, twin)
				}
			}
			done += part.Len()
		})
		out := new(headgatev1.DecideResponse)
		if err := proto.Unmarshal(c.encoded, out); err != nil || done != c.n || len(out.GetAnswers()) != c.n {
			t.Errorf("%x: %d of %d requests are decided, with %d answers: %v", b, done, c.n, len(out.GetAnswers()), err)
		}
	})
}

// TestAllocations: a message takes as many allocations as its response and the copy of its bytes.
func TestAllocations(t *testing.T) {
	if race.On {
		return // The race detector makes sync.Pool drop entries.
	}
	s := New(guards.New(t, everyField), Options{})
	m := new(headgatev1.DecideRequest)
	for range 100 {
		m.Requests = append(m.Requests, &headgatev1.Request{
			Method: "GET", Host: "api.example.com", Path: "/header", Ip: "192.0.2.1", Headers: map[string]string{"x-client-id": "a"},
		})
	}
	encoded, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(100, func() {
		c := s.call(t.Context(), nil, nil)
		if err := c.Decode(encoded); err != nil || c.fault != nil {
			t.Fatal(err, c.fault)
		}
		c.decide(nil)
		s.release(c)
	}); got > 1 {
		t.Errorf("a message of 100 requests takes %v allocations, want 1", got)
	}
}

// BenchmarkMessage decides messages of some requests, without gRPC.
func BenchmarkMessage(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(map[int]string{1: "1", 100: "100"}[n], func(b *testing.B) {
			s := New(guards.New(b, "rules: [{name: a, match: {path: /a}, key: [\"header:X-Client-Id\"], limits: [1000000/1s]}]"), Options{})
			m := new(headgatev1.DecideRequest)
			for range n {
				m.Requests = append(m.Requests, &headgatev1.Request{Method: "GET", Path: "/a", Headers: map[string]string{"x-client-id": "a"}})
			}
			encoded, err := proto.Marshal(m)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				c := s.call(b.Context(), nil, nil)
				_ = c.Decode(encoded)
				c.decide(nil)
				s.release(c)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/decision")
		})
	}
}
