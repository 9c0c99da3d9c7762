package client

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate/headgate"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// texts are values of requests and answers, and the form of each on the wire.
func texts() map[string]string {
	return map[string]string{"": "", "a": "a", "süß": "süß", string(make([]byte, 200)): string(make([]byte, 200)), "\xff\xfe": "\uFFFD", "a\xc3(": "a\uFFFD("}
}

// pick picks one of the texts.
func pick(rnd *rand.Rand) (text, sent string) {
	all := []string{"", "", "a", "süß", string(make([]byte, 200)), "\xff\xfe", "a\xc3("}
	text = all[rnd.IntN(len(all))]
	return text, texts()[text]
}

// TestRequests: generated code reads a message of requests as it was meant.
func TestRequests(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var calls []*call
		var returns []place
		want := &headgatev1.DecideRequest{}
		for range rnd.IntN(4) {
			r, m := randomRequest(rnd)
			calls = append(calls, &call{data: r.appendTo(nil)})
			want.Requests = append(want.Requests, m)
		}
		for range rnd.IntN(3) {
			at := place{rnd.Uint64N(1 << 40), rnd.Uint32N(1000)}
			returns = append(returns, at)
			want.Returns = append(want.Returns, &headgatev1.Return{Message: at.message, Indexes: []uint32{at.index}})
		}
		var got headgatev1.DecideRequest
		if err := proto.Unmarshal(appendReturns(*encode(calls), returns), &got); err != nil || !proto.Equal(&got, want) {
			t.Fatalf("%v: got\n%s\nwant\n%s", err, prototext.Format(&got), prototext.Format(want))
		}
	}
}

// randomRequest gives a request, and the message that it must become.
func randomRequest(rnd *rand.Rand) (*Request, *headgatev1.Request) {
	r, m := &Request{}, &headgatev1.Request{}
	r.Method, m.Method = pick(rnd)
	r.Host, m.Host = pick(rnd)
	r.Path, m.Path = pick(rnd)
	r.Subject, m.Subject = pick(rnd)
	r.Domain, m.Domain = pick(rnd)
	if rnd.IntN(2) == 0 {
		r.IP = netip.MustParseAddr([]string{"192.0.2.1", "2001:db8::1"}[rnd.IntN(2)])
		m.Ip = r.IP.String()
	}
	r.Headers, r.Cookies = map[string]string{}, map[string]string{}
	for i := range rnd.IntN(3) {
		value, sent := pick(rnd)
		name := fmt.Sprint("x-", i)
		r.Headers[name], r.Cookies["c"+name] = value, value
		if m.Headers == nil {
			m.Headers, m.Cookies = map[string]string{}, map[string]string{}
		}
		m.Headers[name], m.Cookies["c"+name] = sent, sent
	}
	for range rnd.IntN(3) {
		d, sent := headgate.DescriptorEntry{}, &headgatev1.Descriptor{}
		d.Name, sent.Key = pick(rnd)
		d.Value, sent.Value = pick(rnd)
		r.Descriptors, m.Descriptors = append(r.Descriptors, d), append(m.Descriptors, sent)
	}
	r.Cost = []int64{0, 1, 300, -1}[rnd.IntN(4)]
	m.Cost = r.Cost
	return r, m
}

// TestAnswers: an answer that generated code has written is read as it was meant.
func TestAnswers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var names names
	for range 3000 {
		m := randomAnswer(rnd)
		encoded, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var got reply
		if err := got.decode(encoded, &names); err != nil {
			t.Fatal(err)
		}
		want := Answer{
			Policy: m.GetPolicy(), Reason: m.GetReason(), Limit: m.GetLimit(), Remaining: m.GetRemaining(),
			Quota:      headgate.Limit{Count: m.GetCount(), Per: m.GetPeriod().AsDuration()},
			RetryAfter: m.GetRetryAfter().AsDuration(), ResetAfter: m.GetResetAfter().AsDuration(),
			Status: int(m.GetStatus()), Location: m.GetLocation(), Violated: m.GetViolated(), Fallback: m.GetFallback(),
		}
		for _, h := range m.GetMarks() {
			want.Marks = append(want.Marks, Header{h.GetName(), h.GetValue()})
		}
		if !reflect.DeepEqual(got.Answer, want) || got.verdict != m.GetVerdict() || got.delay != m.GetDelay().AsDuration() {
			t.Fatalf("got %+v, want %+v\nof %s", got, want, prototext.Format(m))
		}
		if (got.err() != nil) != (m.GetError() != nil) {
			t.Fatalf("got the error %v of %s", got.err(), prototext.Format(m))
		}
		if taken := m.GetVerdict() == headgatev1.Verdict_VERDICT_ALLOW || m.GetVerdict() == headgatev1.Verdict_VERDICT_WAIT; taken != takes(encoded) {
			t.Fatalf("got takes %v of %s", !taken, prototext.Format(m))
		}
	}
}

func randomAnswer(rnd *rand.Rand) *headgatev1.Answer {
	numbers := []int64{0, 0, 1, 127, 128, 1 << 40, math.MaxInt64, -1, math.MinInt64}
	number := func() int64 { return numbers[rnd.IntN(len(numbers))] }
	times := []*durationpb.Duration{
		nil,
		{},
		durationpb.New(time.Second), durationpb.New(time.Nanosecond), durationpb.New(-1500 * time.Millisecond),
		{Seconds: math.MaxInt64},
		{Seconds: math.MinInt64},
		durationpb.New(100 * time.Hour),
	}
	duration := func() *durationpb.Duration { return times[rnd.IntN(len(times))] }
	text := func() string { _, sent := pick(rnd); return sent }
	m := &headgatev1.Answer{
		Verdict: headgatev1.Verdict(rnd.Int32N(5)), Policy: text(), Reason: text(), Limit: number(), Remaining: number(),
		RetryAfter: duration(), ResetAfter: duration(), Delay: duration(), Count: number(), Period: duration(),
		Status: uint32(number()), Location: text(), Fallback: rnd.IntN(2) == 0,
	}
	for range rnd.IntN(3) {
		m.Marks = append(m.Marks, &headgatev1.Header{Name: text(), Value: text()})
		m.Violated = append(m.Violated, text())
	}
	if rnd.IntN(4) == 0 {
		m.Error = &headgatev1.Error{Code: rnd.Int32N(17), Message: text(), Header: text()}
	}
	return m
}

// TestErrors: each code of an error has its meaning.
func TestErrors(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.Unavailable:       fmt.Errorf("%w: m", ErrUnavailable),
		codes.ResourceExhausted: errBusy,
		codes.PermissionDenied:  &RequestError{Problem: "m", Forbidden: true, header: "h"},
		codes.InvalidArgument:   &RequestError{Problem: "m", header: "h"},
	} {
		encoded, err := proto.Marshal(&headgatev1.Answer{Error: &headgatev1.Error{Code: int32(code), Message: "m", Header: "h"}})
		if err != nil {
			t.Fatal(err)
		}
		var r reply
		var known names
		if err := r.decode(encoded, &known); err != nil || fmt.Sprintf("%#v", r.err()) != fmt.Sprintf("%#v", want) {
			t.Errorf("%v: got %v, %v, want %v", code, err, r.err(), want)
		}
	}
}

// TestNames: as many texts are kept as the bound says, and no long ones.
func TestNames(t *testing.T) {
	var n names
	for i := range 3 * mostNames {
		want := fmt.Sprint("name-", i%(2*mostNames))
		if got, err := n.text([]byte(want)); got != want || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if _, err := n.text(make([]byte, mostLength+1)); err != nil || len(*n.known.Load()) != mostNames {
		t.Errorf("%d names are kept, %v", len(*n.known.Load()), err)
	}
	if _, err := n.text([]byte{0xff}); err == nil {
		t.Error("bytes that are no UTF-8 are a name")
	}
	known := []byte("name-7")
	if got := testing.AllocsPerRun(100, func() { _, _ = n.text(known) }); got > 0 {
		t.Errorf("a known name takes %v allocations", got)
	}
}

// FuzzReply: no bytes of a server harm the client. What generated code reads has the same numbers.
func FuzzReply(f *testing.F) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		encoded, err := proto.Marshal(randomAnswer(rnd))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r reply
		var known names
		_ = takes(b)
		if r.decode(b, &known) != nil {
			return
		}
		_ = r.err()
		var m headgatev1.Answer
		if proto.Unmarshal(b, &m) == nil && (m.GetVerdict() != r.verdict || m.GetLimit() != r.Limit || m.GetPolicy() != r.Policy) {
			t.Errorf("got %+v, want %s", r, prototext.Format(&m))
		}
	})
}
