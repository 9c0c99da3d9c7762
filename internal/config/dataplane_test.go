package config

import (
	"net/url"
	"strings"
	"testing"
)

// TestDataPlaneNote: the note appears only where data_plane fast does not make the connections
// to the upstream.
func TestDataPlaneNote(t *testing.T) {
	for _, row := range []struct {
		plane  DataPlane
		scheme string
		noted  bool
	}{
		{DataPlaneFast, "http", false},
		{DataPlaneFast, "unix", false},
		{DataPlaneFast, "https", true},
		{DataPlaneFast, "h2c", true},
		{DataPlaneStandard, "http", false},
		{DataPlaneStandard, "https", false},
		{DataPlaneStandard, "h2c", false},
	} {
		p := Proxy{DataPlane: row.plane, Upstream: &url.URL{Scheme: row.scheme, Host: "a"}}
		got := p.DataPlaneNote()
		if (got != "") != row.noted || row.noted && !strings.Contains(got, row.scheme) {
			t.Errorf("data_plane %s to %s: got the note %q, want one: %v", row.plane, row.scheme, got, row.noted)
		}
	}
	if got := (&Proxy{DataPlane: DataPlaneFast}).DataPlaneNote(); got != "" {
		t.Errorf("without an upstream: got the note %q, want none", got)
	}
}
