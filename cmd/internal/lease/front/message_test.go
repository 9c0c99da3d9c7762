package front

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/lease/state"
	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
	"github.com/headgate/headgate/internal/proto/wire"
	"github.com/headgate/headgate/internal/testkit/allocs"
	"github.com/headgate/headgate/internal/testkit/race"
)

// checked is a part of a message as a string.
func checked(b []byte) string { return wire.Checked(b) }

// slow is the twin of decodeReport: it converts generated types.
func slow(m *leasev1.ReportRequest) state.Report {
	r := state.Report{Holder: m.GetHolder(), Seq: m.GetSeq(), Claims: []state.Claim{}, Acks: []state.Ack{}}
	for _, c := range m.GetClaims() {
		claim := state.Claim{
			Resource: c.GetResource(), Wants: c.GetWants(), Band: int(c.GetBand()), Holders: c.GetHolders(), Learning: c.GetLearning(),
			Version: versionOf(c.GetVersion()), Holds: c.GetHolds(), Release: c.GetRelease(),
			Spent: c.GetSpent(), Refused: c.GetRefused(), Unbacked: c.GetUnbacked(),
		}
		claim.Left = time.Duration(max(min(c.GetLeftUs(), math.MaxInt64/1000), -math.MaxInt64/1000)) * time.Microsecond
		for _, b := range c.GetCurve() {
			claim.Curve = append(claim.Curve, state.Bucket{Band: int(b.GetBand()), Weight: b.GetWeight(), Wants: b.GetWants()})
		}
		if claim.Curve == nil && (claim.Holders != 0 || claim.Learning) {
			claim.Curve = []state.Bucket{}
		}
		r.Claims = append(r.Claims, claim)
	}
	for _, a := range m.GetAcks() {
		r.Acks = append(r.Acks, state.Ack{Resource: a.GetResource(), Version: versionOf(a.GetVersion()), Holds: a.GetHolds()})
	}
	return r
}

func versionOf(v *leasev1.Version) state.Version {
	return state.Version{Term: v.GetTerm(), Number: v.GetNumber()}
}

// full is a report with every field.
func full() *leasev1.ReportRequest {
	return &leasev1.ReportRequest{
		Holder: name("leaf"), Seq: 1 << 60,
		Claims: []*leasev1.Claim{{
			Resource: "db/orders", Wants: 5, Band: 2, Curve: manyBuckets(3), Holders: 7, Learning: true,
			Version: &leasev1.Version{Term: 1 << 50, Number: 9}, Holds: 4, LeftUs: 1e6, Release: true, Spent: 10, Refused: 1, Unbacked: true,
		}, {Wants: -1, LeftUs: math.MaxInt64, Holders: 1}},
		Acks: []*leasev1.Ack{{Resource: "db/orders", Version: &leasev1.Version{Number: 3}, Holds: 2}},
	}
}

// FuzzReport compares the reader with the generated types, and what it accepts with what the writer writes. Then the service
// takes the report: nothing panics.
func FuzzReport(f *testing.F) {
	for _, m := range []*leasev1.ReportRequest{{}, full(), claims("web", 1, 1, "db/a", "db/b")} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x1a, 0x04, 0x22, 0x02, 0x08, 0x80}) // A bucket that ends early.
	f.Add([]byte{0x1a, 0x06, 0x3a, 0x01, 0x08, 0x0a, 0x01, 0xff})
	s := serviceOf(f, Options{State: root()})
	f.Fuzz(func(t *testing.T, b []byte) {
		measured, err := measure(b)
		m := new(leasev1.ReportRequest)
		if twin := proto.Unmarshal(b, m); err != nil {
			if twin == nil && measured.claims <= state.MaxClaims && measured.acks <= state.MaxClaims && measured.buckets <= state.MaxBuckets && len(b) <= maxMessage {
				t.Fatalf("%x: %v, and the generated types read it", b, err)
			}
			return
		} else if twin != nil {
			t.Fatalf("%x is accepted, and the generated types say %v", b, twin)
		}
		got, want := decodeReport(b, measured), slow(m)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%x: got %+v, want %+v", b, got, want)
		}
		again := encodeReport(got.Holder, &got)
		if measured, err = measure(again); err != nil || !reflect.DeepEqual(decodeReport(again, measured), got) {
			t.Fatalf("%x: written as %x: %v", b, again, err)
		}
		_, _ = s.receive("", &got, new(call))
	})
}

// FuzzResponse reads what a parent may send, and compares it with the generated types.
func FuzzResponse(f *testing.F) {
	lease := state.Lease{
		Resource: "db/orders", Version: state.Version{Term: 3, Number: 4}, Amount: 5, Seq: 6, Length: 7 * time.Second, Refresh: time.Second,
		Safe: 8, Slots: true, Parts: []int64{1, 2, 300}, Each: 9, Counted: 10, Algorithm: state.MaxMin,
		Unknown: 11 * time.Second, Unbacked: true,
	}
	f.Add(appendRefusal(appendLease(nil, &lease), 11, &state.Error{Code: state.NotFound, Resource: "db", Text: "no pattern"}))
	f.Add(draining())
	f.Add([]byte{0x12, 0x04, 0x48, 0x01, 0x48, 0x02}) // Parts that are not packed.
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeResponse(b)
		m := new(leasev1.ReportResponse)
		if twin := proto.Unmarshal(b, m); err != nil || twin != nil {
			return // The readers differ in the texts that nothing uses.
		}
		if len(got.leases) != len(m.GetLeases()) || len(got.refusals) != len(m.GetRefusals()) || got.master != m.GetMaster() || got.draining != m.GetDraining() {
			t.Fatalf("%x: got %+v, want %v", b, got, m)
		}
		for i, l := range m.GetLeases() {
			g := got.leases[i]
			if g.Resource != l.GetResource() || g.Version != versionOf(l.GetVersion()) || g.Seq != l.GetSeq() || g.Slots != l.GetSlots() || len(g.Parts) != len(l.GetParts()) ||
				l.GetAmount() >= 0 && l.GetAmount() <= state.MaxAmount && g.Amount != l.GetAmount() ||
				g.Unbacked != l.GetUnbacked() {
				t.Fatalf("%x: got %+v, want %v", b, g, l)
			}
			if g.Amount < 0 || g.Length < 0 || g.Refresh < 0 || g.Safe < 0 || g.Unknown < 0 || g.Counted < 0 || g.Each < 0 || g.Algorithm > state.MaxMin {
				t.Fatalf("%x: %+v is out of range", b, g)
			}
		}
	})
}

// TestLeaseOnTheWire: every field of a lease arrives.
func TestLeaseOnTheWire(t *testing.T) {
	want := state.Lease{
		Resource: "db/orders", Version: state.Version{Term: 3, Number: 4}, Amount: 5, Seq: 6, Length: 7 * time.Second, Refresh: time.Second,
		Safe: 8, Slots: true, Parts: []int64{1, 0, 300}, Each: 9, Counted: 10, Algorithm: state.MaxMin,
		Unknown: 11 * time.Second, Unbacked: true,
	}
	b := appendLease(nil, &want)
	got, err := decodeResponse(b)
	if err != nil || len(got.leases) != 1 || !reflect.DeepEqual(got.leases[0], want) {
		t.Errorf("got %+v, %v", got, err)
	}
	m := new(leasev1.ReportResponse)
	if err := proto.Unmarshal(b, m); err != nil || m.GetLeases()[0].GetParts()[2] != 300 || m.GetLeases()[0].GetAlgorithm() != leasev1.Algorithm_ALGORITHM_MAX_MIN ||
		m.GetLeases()[0].GetUnknownUs() != 11_000_000 || !m.GetLeases()[0].GetUnbacked() {
		t.Errorf("the generated types read %v, %v", m, err)
	}
}

// TestMemoryOfReports: a report and its answers take at most what the server counts for them.
func TestMemoryOfReports(t *testing.T) {
	if race.On {
		return // The race detector takes memory of its own.
	}
	many := &leasev1.ReportRequest{Holder: name("web"), Seq: 1}
	for i := range 1000 {
		many.Claims = append(many.Claims, &leasev1.Claim{Resource: strings.Repeat("x", i%256), Curve: manyBuckets(40)})
		many.Acks = append(many.Acks, &leasev1.Ack{})
	}
	for _, m := range []*leasev1.ReportRequest{full(), many} {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got := allocs.Bytes(func() {
			r := request{ctx: t.Context()}
			if err := r.Decode(b); err != nil || r.fault != nil {
				t.Fatal(err, r.fault)
			}
		})
		measured, err := measure(b)
		if want := uint64(freeBytes + measured.memory(len(b))); err != nil || got > want {
			t.Errorf("%d bytes, want at most %d, %v", got, want, err)
		}
	}
}
