package quota

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestWindowOfACarriedCount: the window says that units can be from before it.
func TestWindowOfACarriedCount(t *testing.T) {
	start := time.Date(2026, time.November, 29, 0, 0, 0, 0, time.UTC)
	end := start.AddDate(0, 1, 0)
	const text = "2026-11-29T00:00:00Z to 2026-12-29T00:00:00Z"
	for want, l := range map[string]admin.LimitUsage{
		"-":  {},
		text: {Start: &start, End: &end},
		text + " (may have units from before: the calendar has changed)": {Start: &start, End: &end, Carried: true},
	} {
		if got := window(&l); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestCSVOfACarriedCount: the last column says that units can be from before the window.
func TestCSVOfACarriedCount(t *testing.T) {
	var out bytes.Buffer
	page := &admin.Usage{Customers: []admin.CustomerUsage{{Customer: "acme", Limits: []admin.LimitUsage{{Quota: "api", Carried: true}, {Quota: "sms"}}}}}
	write, end := Table(&out, true)
	if err := write(page); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("got %q, %v", out.String(), err)
	}
	for i, want := range []string{"carried", "true", "false"} {
		if got := rows[i][len(rows[i])-1]; got != want {
			t.Errorf("line %d ends with %q, want %q", i, got, want)
		}
	}
}
