package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// shares has the fields of /api/v1/shares that the demo shows.
type shares struct {
	Cycle        uint64        `json:"cycle"`
	Capacity     int64         `json:"capacity"`
	Clients      []clientShare `json:"clients"`
	CycleSeconds float64       `json:"cycle_seconds"`
	Ends         time.Time     `json:"ends"`
}

type clientShare struct {
	Client        string `json:"client"`
	Demand        int64  `json:"demand"`
	Size          int64  `json:"size"`
	Borrowed      int64  `json:"borrowed"`
	Lent          int64  `json:"lent"`
	Admitted      int64  `json:"admitted"`
	Refused       int64  `json:"refused"`
	AdmittedTotal int64  `json:"admitted_total"`
	RefusedTotal  int64  `json:"refused_total"`
}

// readShares bounds the answer, in bytes. A thousand clients need about 300 KiB.
const readShares = 8 << 20

// query requests the current shares.
func query(ctx context.Context, with *http.Client, admin string) (*shares, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/api/v1/shares", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := with.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("demo: the proxy answers %s to /api/v1/shares", resp.Status)
	}
	s := new(shares)
	return s, json.NewDecoder(io.LimitReader(resp.Body, readShares)).Decode(s)
}

// row has the units of one client in a finished cycle.
type row struct {
	client                                              string
	asked, size, borrowed, lent, admitted, refused, own int64
}

// account computes the rows of a cycle from two answers of the proxy. within was read during
// the cycle, when every client had its size. next was read in the next cycle, when all
// requests were counted. account returns false when next is not the next cycle.
func account(within, next *shares) ([]row, bool) {
	if next.Cycle != within.Cycle+1 {
		return nil, false
	}
	var rows []row
	for _, was := range within.Clients {
		at := slices.IndexFunc(next.Clients, func(s clientShare) bool { return s.Client == was.Client })
		if at < 0 {
			continue // The client was forgotten.
		}
		is := next.Clients[at]
		rows = append(rows, row{
			client: was.Client, asked: is.Demand, size: was.Size, borrowed: was.Borrowed, lent: was.Lent,
			// A total without the current cycle's part is the total at the start of the cycle.
			admitted: (is.AdmittedTotal - is.Admitted) - (was.AdmittedTotal - was.Admitted),
			refused:  (is.RefusedTotal - is.Refused) - (was.RefusedTotal - was.Refused),
			own:      was.Size - was.Borrowed,
		})
	}
	return rows, true
}

// total adds the rows.
func total(rows []row) row {
	var t row
	for _, r := range rows {
		t.asked, t.size, t.borrowed, t.lent = t.asked+r.asked, t.size+r.size, t.borrowed+r.borrowed, t.lent+r.lent
		t.admitted, t.refused = t.admitted+r.admitted, t.refused+r.refused
	}
	return t
}
