package proxy

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

// TestDataPlaneTerms checks the terms of the start line, also for a system without data_plane fast.
func TestDataPlaneTerms(t *testing.T) {
	const carried = "[data_plane fast data_plane_note connections to an upstream of https use net/http's transport"
	for _, row := range []struct {
		plane  config.DataPlane
		scheme string
		fast   bool
		want   string
	}{
		{config.DataPlaneStandard, "https", true, "[data_plane standard]"},
		{config.DataPlaneStandard, "http", false, "[data_plane standard]"},
		{config.DataPlaneFast, "http", true, "[data_plane fast]"},
		{config.DataPlaneFast, "https", true, carried},
		{config.DataPlaneFast, "https", false, "[data_plane standard data_plane_note " + noFastNote + "]"},
	} {
		p := &config.Proxy{DataPlane: row.plane, Upstream: &url.URL{Scheme: row.scheme, Host: "a"}}
		if got := fmt.Sprint(dataPlaneTerms(p, row.fast)); !strings.HasPrefix(got, row.want) {
			t.Errorf("data_plane %s to %s, fast available %v: got %s, want %s", row.plane, row.scheme, row.fast, got, row.want)
		}
	}
	if got := dataPlaneTerms(&config.Proxy{DataPlane: config.DataPlaneFast}, true); got != nil {
		t.Errorf("without a proxy: got %v, want no terms", got)
	}
}
