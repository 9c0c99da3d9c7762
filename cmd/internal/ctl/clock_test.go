package ctl

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestStatusOfClocks: a node whose clock differs by a second or more is named with the difference.
func TestStatusOfClocks(t *testing.T) {
	var out strings.Builder
	err := writeStatus(&out, &admin.Status{Store: admin.StoreStatus{Kind: "redis://a,b", ClockErrors: 7, Nodes: []admin.NodeStatus{
		{Address: "a:1", State: "closed", ClockAheadSeconds: 8640000.2},
		{Address: "b:2", State: "closed", ClockAheadSeconds: 0.9},
		{Address: "c:3", State: "closed", ClockAheadSeconds: -90},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	want := "CLOCK OF THE STORE AHEAD OF THIS INSTANCE CALENDAR LIMITS LEFT TO FALLBACKS a:1 2400h0m0s 7 requests c:3 -1m30s 7 requests"
	if !strings.Contains(text, want) || strings.Count(text, "CLOCK OF THE STORE") != 1 {
		t.Errorf("got\n%s\nwant %s", out.String(), want)
	}
}
