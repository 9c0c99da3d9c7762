package front

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/lease/state"
	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
)

// TestReport: a unary call has the answers of all its claims.
func TestReport(t *testing.T) {
	r := serve(t, Options{State: root()})
	got, err := r.report(t, claims("web", 1, 1000, "db/orders", "slots/worker", "queue/mail"))
	if err != nil || len(got.GetLeases()) != 2 || len(got.GetRefusals()) != 1 || got.GetHolder() != name("web") {
		t.Fatalf("%v, %v", got, err)
	}
	if slots := got.GetLeases()[1]; !slots.GetSlots() || slots.GetAmount() != 2 {
		t.Errorf("the lease of slots: %v", slots)
	}
	if got, err := r.report(t, claims("web", 2, 1000)); err != nil || len(got.GetLeases()) != 0 {
		t.Errorf("without claims: %v, %v", got, err)
	}
	for what, row := range map[string]struct {
		report *leasev1.ReportRequest
		want   codes.Code
	}{
		"the same report again": {claims("web", 2, 1000, "db/orders"), codes.FailedPrecondition},
		"a negative want":       {claims("web", 3, -1, "db/orders"), codes.InvalidArgument},
		"an empty message":      {&leasev1.ReportRequest{}, codes.InvalidArgument},
	} {
		if got, err := r.report(t, row.report); status.Code(err) != row.want {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}

// TestStatus has the codes of refused reports.
func TestStatus(t *testing.T) {
	for code, want := range map[state.Code]codes.Code{
		state.Invalid: codes.InvalidArgument, state.Forbidden: codes.PermissionDenied,
		state.NotFound: codes.NotFound, state.Exhausted: codes.ResourceExhausted, 200: codes.ResourceExhausted,
	} {
		if err := statusOf(&state.Error{Code: code, Field: "holder", Text: "is wrong"}); status.Code(err) != want || status.Convert(err).Message() != "holder: is wrong" {
			t.Errorf("code %d: %v", code, err)
		}
	}
}

// TestTimes tells what happens as time passes: the lease of a holder that is gone ends, and another one gets the capacity.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceOf(t, Options{State: root()})
		ask := func(holder string, seq uint64) string {
			b, err := s.report(t.Context(), "", &state.Report{Holder: name(holder), Seq: seq, Claims: []state.Claim{{Resource: "db/orders", Wants: 100_000}}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := decodeResponse(b)
			if err != nil {
				t.Fatal(err)
			}
			return r.leases[0].Length.String() + " " + time.Duration(r.leases[0].Amount).String()
		}
		for _, step := range []struct {
			wait   time.Duration
			holder string
			want   string
		}{
			{0, "gone", "30s 100µs"},
			{time.Second, "late", "30s 0s"},
			{28 * time.Second, "late", "30s 0s"},
			{2 * time.Second, "late", "30s 100µs"},
		} {
			time.Sleep(step.wait) //nolint:forbidigo // in the bubble of TestTimes
			if got := ask(step.holder, uint64(time.Now().UnixNano())); got != step.want {
				t.Errorf("%s after %v: got %s, want %s", step.holder, step.wait, got, step.want)
			}
		}
	})
}

// TestNoParent: a call of a server without its parent ends with a status that says so.
func TestNoParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := root()
		config.Resources, config.Child = nil, true
		reports := 0
		s := serviceOf(t, Options{State: config, Up: func(*state.Report) { reports++ }})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		report := &state.Report{Holder: name("web"), Seq: 1, Claims: []state.Claim{{Resource: "db/orders", Wants: 1}}}
		if got, err := s.report(ctx, "", report); status.Code(err) != codes.Unavailable || reports < 2 {
			t.Errorf("%v, %v after %d reports to the parent", got, err, reports)
		}
	})
}

// TestReplaced: a call whose holder reports again ends.
func TestReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serviceOf(t, Options{State: root()})
		claims := []state.Claim{{Resource: "db/orders", Wants: 1}} // The first claim of a resource is answered at once.
		if _, err := s.report(t.Context(), "", &state.Report{Holder: name("first"), Seq: 1, Claims: claims}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := s.report(t.Context(), "", &state.Report{Holder: name("web"), Seq: 1, Claims: []state.Claim{{Resource: "db/orders", Wants: 1}}})
			ended <- err
		}()
		synctest.Wait()
		_, err := s.report(t.Context(), "", &state.Report{Holder: name("web"), Seq: 2, Claims: []state.Claim{{Resource: "db/orders", Wants: 2}}})
		if first := <-ended; status.Code(first) != codes.Aborted || err != nil {
			t.Errorf("the first call ends with %v, the second with %v", first, err)
		}
	})
}

// TestNamesAreCopied: what the service keeps is not a part of the message.
func TestNamesAreCopied(t *testing.T) {
	s := serviceOf(t, Options{State: root()})
	message := []byte(name("web") + "db/orders")
	texts := string(message)
	holder, resource := message[:leastHolder], message[leastHolder:]
	report := &state.Report{Holder: checked(holder), Seq: 1, Claims: []state.Claim{{Resource: checked(resource), Wants: 1000}}}
	if _, err := s.report(t.Context(), "", report); err != nil {
		t.Fatal(err)
	}
	clear(message)
	if _, found := s.role.server.Usage(0, texts[leastHolder:]); !found || s.role.server.Heard(texts[:leastHolder]) != 1 {
		t.Error("the names have changed with the message")
	}
}

// TestOwnersAreBounded: holders that released all claims leave nothing behind.
func TestOwnersAreBounded(t *testing.T) {
	s := serviceOf(t, Options{State: root()})
	x := &stream{service: s, holders: map[string]struct{}{}}
	for i := range maxOwners {
		s.own(name(string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676%26))+string(rune('a'+i/17576))), x)
	}
	if len(s.owners) != maxOwners {
		t.Fatalf("%d names are different, want %d", len(s.owners), maxOwners)
	}
	if s.own(name("last"), x); len(s.owners) != 1 || len(x.holders) != 1 {
		t.Errorf("%d holders are left, and %d of the stream", len(s.owners), len(x.holders))
	}
}
