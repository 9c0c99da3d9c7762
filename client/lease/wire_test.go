package client

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/lease/holder"
	"github.com/headgate/headgate/internal/lease/state"
	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
)

// TestWire compares the messages with the generated types.
func TestWire(t *testing.T) {
	claim := state.Claim{
		Resource: "db", Wants: 5, Band: 2, Version: state.Version{Term: 3, Number: 4}, Holds: 6, Left: 1500 * time.Nanosecond, Release: true,
		Spent: 7, Refused: 8, Unbacked: true,
	}
	r := &holder.Report{
		Holder: "h", Seq: 9, Claims: []state.Claim{claim},
		Acks: []state.Ack{{Resource: "db", Version: state.Version{Term: 1, Number: 2}, Holds: 3}},
	}
	var got leasev1.ReportRequest
	if err := proto.Unmarshal(encode(r), &got); err != nil {
		t.Fatal(err)
	}
	want := &leasev1.ReportRequest{
		Holder: "h", Seq: 9,
		Claims: []*leasev1.Claim{{
			Resource: "db", Wants: 5, Band: 2, Version: &leasev1.Version{Term: 3, Number: 4}, Holds: 6, LeftUs: 2, Release: true, Spent: 7, Refused: 8,
			Unbacked: true,
		}},
		Acks: []*leasev1.Ack{{Resource: "db", Version: &leasev1.Version{Term: 1, Number: 2}, Holds: 3}},
	}
	if !proto.Equal(&got, want) {
		t.Errorf("%v, want %v", &got, want)
	}
	sent, err := proto.Marshal(&leasev1.ReportResponse{
		Holder: "h", Master: "m", Draining: true,
		Leases: []*leasev1.Lease{{
			Resource: "db", Version: &leasev1.Version{Term: 1, Number: 2}, Amount: 3, Seq: 4, LengthUs: 5, RefreshUs: 6, Safe: 7, Slots: true, Parts: []int64{1, 2},
			UnknownUs: 8, Unbacked: true,
		}},
		Refusals: []*leasev1.Refusal{{Seq: 1, Resource: "r", Code: leasev1.Code_CODE_NOT_FOUND, Text: "t"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if err := m.decode(sent); err != nil {
		t.Fatal(err)
	}
	l, f := &m.leases[0], &m.refusals[0]
	if l.Resource != "db" || l.Version != (state.Version{Term: 1, Number: 2}) || l.Amount != 3 || l.Seq != 4 || !l.Slots || l.Safe != 7 ||
		l.Length != 5*time.Microsecond || l.Refresh != 6*time.Microsecond || l.Unknown != 8*time.Microsecond || !l.Unbacked {
		t.Errorf("the lease is %+v", l)
	}
	if m.master != "m" || !m.draining || f.Seq != 1 || *f.Err != (state.Error{Code: state.NotFound, Resource: "r", Text: "t"}) {
		t.Errorf("the message is %+v with %+v", m, f.Err)
	}
}

// FuzzDecode has messages of any bytes: their leases are bounded.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x12, 0x04, 0x0a, 0x02, 'd', 'b', 0x28, 0x01})
	f.Add([]byte{0x1a, 0x02, 0x22, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		if m.decode(b) != nil {
			return
		}
		if len(m.leases)+len(m.refusals) > 2*state.MaxClaims+1 || len(m.master) > state.MaxName {
			t.Errorf("%d leases and %d refusals", len(m.leases), len(m.refusals))
		}
		for i := range m.refusals {
			if len(m.refusals[i].Err.Text) > holder.MaxText {
				t.Error("a text is too long")
			}
		}
	})
}
