package front

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/internal/lease/state"
	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
)

// TestStream: two holders share a stream. A third one on another stream takes from both, and each push names its holder.
func TestStream(t *testing.T) {
	r := serve(t, Options{State: root()})
	c, other := r.open(t), r.open(t)
	c.send(claims("web", 1, 40_000, "db/orders"))
	first := c.receive()
	if got := first.GetLeases()[0]; first.GetHolder() != name("web") || got.GetAmount() != 40_000 || got.GetSeq() != 1 ||
		got.GetLengthUs() != 30_000_000 || got.GetRefreshUs() != 5_000_000 || got.GetSafe() != 1000 {
		t.Errorf("the first answer: %v", first)
	}
	c.send(claims("batch", 1, 90_000, "db/orders"))
	if got := c.receive(); got.GetHolder() != name("batch") || got.GetLeases()[0].GetAmount() != 60_000 {
		t.Errorf("the answer of the second holder: %v", got)
	}
	other.send(claims("late", 1, 30_000, "db/orders"))
	answer := other.receive().GetLeases()[0] // Nothing is free yet.
	push := c.receive()
	if answer.GetAmount() != 0 || push.GetHolder() != name("batch") || push.GetLeases()[0].GetSeq() != 0 || push.GetLeases()[0].GetAmount() >= 60_000 {
		t.Errorf("the answer %v and the push %v", answer, push)
	}
	shrunk := push.GetLeases()[0]
	c.send(&leasev1.ReportRequest{Holder: name("batch"), Seq: 2, Acks: []*leasev1.Ack{
		{Resource: "db/orders", Version: shrunk.GetVersion(), Holds: shrunk.GetAmount()},
	}})
	if grown := other.receive(); grown.GetLeases()[0].GetAmount() != 60_000-shrunk.GetAmount() {
		t.Errorf("after the acknowledgement of %v: %v", shrunk, grown)
	}
	if got := r.Stats(); got.Streams != 2 || got.Reports != 4 || got.Leases != 3 || got.Pushes < 2 || got.Holders != 3 || got.Resources != 1 || got.Claims != 3 {
		t.Errorf("counted %+v", got)
	}
}

// TestRefusedReports: what is wrong with a report of a stream is said on the stream, which stays open.
func TestRefusedReports(t *testing.T) {
	config := root()
	config.Callers = nil
	r := serve(t, Options{State: config})
	c := r.open(t)
	long := strings.Repeat("x", 257)
	for what, row := range map[string]struct {
		report *leasev1.ReportRequest
		want   string
	}{
		"an empty message": {&leasev1.ReportRequest{}, "INVALID: holder: 0 bytes"},
		"a short holder":   {&leasev1.ReportRequest{Holder: "web", Seq: 1}, "INVALID: holder: 3 bytes"},
		"a long holder":    {&leasev1.ReportRequest{Holder: long, Seq: 1}, "INVALID: holder: 257 bytes"},
		"no seq":           {claims("web", 0, 1, "db/orders"), "INVALID: seq: 0"},
		"a negative want":  {claims("web", 1, -1, "db/orders"), "INVALID: claims[0].wants: -1"},
		"a huge want":      {claims("web", 1, 1<<62, "db/orders"), "INVALID: claims[0].wants: 4611686018427387904"},
		"a claim twice":    {claims("web", 1, 1, "db/orders", "db/orders"), `INVALID: claims[1].resource: "db/orders"`},
		"a long resource":  {claims("web", 1, 1, long), "INVALID: claims[0].resource: 257 bytes"},
		"a negative hold":  {&leasev1.ReportRequest{Holder: name("web"), Seq: 1, Claims: []*leasev1.Claim{{Resource: "db/a", Holds: -1}}}, "INVALID: claims[0].holds"},
		"a negative time":  {&leasev1.ReportRequest{Holder: name("web"), Seq: 1, Claims: []*leasev1.Claim{{Resource: "db/a", LeftUs: -1}}}, "INVALID: claims[0].holds"},
		"a negative ack":   {&leasev1.ReportRequest{Holder: name("web"), Seq: 1, Acks: []*leasev1.Ack{{Resource: "db/a", Holds: -1}}}, "INVALID: acks[0].holds"},
		"a foreign band":   {&leasev1.ReportRequest{Holder: name("web"), Seq: 1, Claims: []*leasev1.Claim{{Resource: "db/a", Band: 2}}}, "FORBIDDEN: claims[0].band"},
		"a curve":          {&leasev1.ReportRequest{Holder: name("web"), Seq: 1, Claims: []*leasev1.Claim{{Resource: "db/a", Curve: []*leasev1.Bucket{{}}}}}, "FORBIDDEN: claims[0].curve"},
		"no pattern":       {claims("web", 7, 1, "queue/mail"), `NOT_FOUND: no pattern matches: add {match: "queue/*", capacity: ...} to lease.resources`},
	} {
		c.send(row.report)
		got := c.receive().GetRefusals()
		if len(got) != 1 || got[0].GetSeq() != row.report.GetSeq() {
			t.Errorf("%s: %v", what, got)
			continue
		}
		text := strings.TrimPrefix(got[0].GetCode().String(), "CODE_") + ": " + got[0].GetText()
		if !strings.HasPrefix(text, row.want) {
			t.Errorf("%s: %s, want %s", what, text, row.want)
		}
	}
}

// TestHolderOfAnotherCaller: a holder belongs to the caller that has sent it first.
func TestHolderOfAnotherCaller(t *testing.T) {
	s := serviceOf(t, Options{State: root()})
	c := &call{}
	report := state.Report{Holder: name("web"), Seq: 1, Claims: []state.Claim{{Resource: "db/orders", Wants: 1}}}
	if _, err := s.receive("shop", &report, c); err != nil {
		t.Fatal(err)
	}
	if _, err := s.receive("thief", &report, c); err == nil || err.Code != state.Forbidden {
		t.Errorf("another caller gets %v", err)
	}
}

// TestBrokenMessages end the stream.
func TestBrokenMessages(t *testing.T) {
	r := serve(t, Options{State: root()})
	many := &leasev1.ReportRequest{Holder: name("web"), Seq: 1, Claims: make([]*leasev1.Claim, 1001)}
	for i := range many.GetClaims() {
		many.Claims[i] = new(leasev1.Claim)
	}
	for what, m := range map[string]*leasev1.ReportRequest{
		"the message has":     {Holder: strings.Repeat("x", maxMessage)},
		"1001 claims":         many,
		"claims[0].curve: 64": {Claims: []*leasev1.Claim{{Curve: manyBuckets(649)}}},
	} {
		c := r.open(t)
		c.send(m)
		err := c.stream.RecvMsg(new(leasev1.ReportResponse))
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
}

func manyBuckets(n int) []*leasev1.Bucket {
	all := make([]*leasev1.Bucket, n)
	for i := range all {
		all[i] = &leasev1.Bucket{Band: 1, Weight: 1, Wants: 1}
	}
	return all
}

// blocked is a stream whose client reads nothing.
type blocked struct {
	grpc.ServerStream

	released chan struct{}
}

func (b *blocked) SendMsg(any) error {
	<-b.released
	return io.EOF
}

// unread makes a stream whose client reads nothing, and which is sending.
func unread(t *testing.T, s *Service) *stream {
	t.Helper()
	b := &blocked{released: make(chan struct{})}
	x := &stream{service: s, stream: b, holders: map[string]struct{}{}, backlog: rpc.NewBacklog(nil), ending: make(chan struct{})}
	s.add(x)
	ended := make(chan struct{})
	x.lease("first", &state.Lease{})
	x.sending = true
	go func() {
		_ = x.send()
		close(ended)
	}()
	until(t, "the sender", func() bool { x.mu.Lock(); defer x.mu.Unlock(); return x.taken > 0 })
	t.Cleanup(func() {
		close(b.released)
		<-ended
		all, own := s.waiting.Load(), x.waiting.Load()
		x.close()
		if s.waiting.Load() != all-own || x.waiting.Load() != 0 {
			t.Errorf("%d of %d bytes are still counted", s.waiting.Load(), all)
		}
	})
	return x
}

// TestUnread: leases for a client that does not read wait once for each claim. Beyond the bound of a stream, it ends.
func TestUnread(t *testing.T) {
	s := serviceOf(t, Options{State: root()})
	x := unread(t, s)
	for i := range int64(1_000_000) {
		x.lease("web", &state.Lease{Resource: "db/orders", Amount: i})
	}
	if got := s.Stats().WaitingBytes; got > 2000 {
		t.Errorf("a million leases of a claim take %d bytes", got)
	}
	for i := 0; s.Stats().Closed == 0 && i < maxWaiting; i++ {
		x.lease(name(strings.Repeat("x", i%7)), &state.Lease{Resource: strings.Repeat("y", i%256) + string(rune('a'+i%26)) + string(rune('a'+i/26))})
	}
	if got := s.Stats(); got.WaitingBytes > maxWaiting+1000 || !errors.Is(x.err, errUnread) {
		t.Errorf("the stream has %v and %v", got, x.err)
	}
}

// TestUnreadOfAll: beyond the bound of all streams, the one with the most ends, and no other one before that. Answers are dropped.
func TestUnreadOfAll(t *testing.T) {
	s := serviceOf(t, Options{State: root()})
	few, most := unread(t, s), unread(t, s)
	few.lease("web", &state.Lease{Resource: "db/a"})
	for _, resource := range []string{"db/a", "db/b", "db/c"} {
		most.lease("web", &state.Lease{Resource: resource})
	}
	s.waiting.Add(2 * maxAllWaiting)
	before := s.waiting.Load()
	for range 3 {
		few.lease("web", &state.Lease{Resource: "db/b"})
	}
	if few.err != nil || !errors.Is(most.err, errUnread) || s.waiting.Load() != before {
		t.Errorf("the streams end with %v and %v, and %d bytes are added", few.err, most.err, s.waiting.Load()-before)
	}
	s.remove(most)
	few.lease("web", &state.Lease{Resource: "db/b"})
	if !errors.Is(few.err, errUnread) {
		t.Errorf("the next stream ends with %v", few.err)
	}
	s.waiting.Add(-2 * maxAllWaiting)
}

// TestAllResourcesOfAServer: the answers to a server with all resources wait on one stream, with long names and parts for all bands.
func TestAllResourcesOfAServer(t *testing.T) {
	s := serviceOf(t, Options{State: root()})
	x := unread(t, s)
	for i := range state.MaxResources {
		resource := fmt.Sprintf("db/%0253d", i)
		lease := state.Lease{Resource: resource, Parts: make([]int64, state.MaxBands)}
		x.lease(name("leaf"), &lease)
		x.refuse(name("leaf"), 1, &state.Error{Code: state.NotFound, Resource: resource, Text: resource + resource[:100]})
	}
	if got := s.Stats(); x.err != nil || len(x.queue.order) != state.MaxResources {
		t.Errorf("the stream has %d bytes and ends with %v", got.WaitingBytes, x.err)
	}
}

// TestPushAfterAnswer: a push that waits with an answer keeps what renews the lease.
func TestPushAfterAnswer(t *testing.T) {
	var q queue
	version := func(n uint64) state.Version { return state.Version{Term: 1, Number: n} }
	q.lease("web", &state.Lease{Resource: "db", Version: version(1), Amount: 10, Seq: 7, Length: time.Second})
	q.lease("web", &state.Lease{Resource: "db", Version: version(2), Amount: 5})
	q.lease("web", &state.Lease{Resource: "other"})
	all := q.take()
	got := all[0].lease
	if len(all) != 2 || got.Seq != 7 || got.Length != time.Second || got.Amount != 5 || got.Version != version(2) {
		t.Errorf("%d answers, the first %+v", len(all), got)
	}
}

// TestDrain asks open streams and later ones to end.
func TestDrain(t *testing.T) {
	r := serve(t, Options{State: root()})
	before := r.open(t)
	before.send(claims("web", 1, 1000, "db/orders"))
	before.receive()
	r.Drain()
	after := r.open(t)
	for _, c := range []*client{before, after} {
		if !c.receive().GetDraining() {
			t.Error("a stream is not asked to end")
		}
	}
}

// TestOldStreams: a client is asked to open another stream.
func TestOldStreams(t *testing.T) {
	r := serve(t, Options{State: root(), MaxAge: time.Millisecond})
	if !r.open(t).receive().GetDraining() {
		t.Error("an old stream is not asked to end")
	}
}

// TestStreamEnds: nothing of an ended stream stays, and pushes for its holders go nowhere.
func TestStreamEnds(t *testing.T) {
	r := serve(t, Options{State: root()})
	c := r.open(t)
	c.send(claims("web", 1, 100_000, "db/orders"))
	c.receive()
	if err := c.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	until(t, "the end of the stream", func() bool {
		streams := r.Stats().Streams
		r.mu.Lock()
		defer r.mu.Unlock()
		return streams == 0 && len(r.owners) == 0
	})
	if got, err := r.report(t, claims("late", 1, 100_000, "db/orders")); err != nil || got.GetLeases()[0].GetAmount() != 0 {
		t.Errorf("%v, %v", got, err)
	}
}
