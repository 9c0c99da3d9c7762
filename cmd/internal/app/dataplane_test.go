package app

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestStartLineNamesTheDataPlane checks that the start line has the terms.
func TestStartLineNamesTheDataPlane(t *testing.T) {
	var log logs.Text
	o := options(t)
	o.Log = log.Logger()
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Stop() }()
	if text := log.Take(); !strings.Contains(text, " data_plane="+string(o.Config.Proxy.DataPlane)) {
		t.Errorf("the start line does not name the data plane:\n%s", text)
	}
}

// TestStatusCountsPaths checks that requests.by_path has the paths with requests, and no others.
func TestStatusCountsPaths(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Stop() }()
	for range 3 {
		i.rules.Report().Traffic.Served(report.PathFast)
	}
	i.rules.Report().Traffic.Served(report.PathSize)
	var s struct {
		Requests struct {
			ByPath map[string]uint64 `json:"by_path"`
		} `json:"requests"`
	}
	_, text := get(t, i.Addresses().Admin+"/api/v1/status")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if want := map[string]uint64{"fast": 3, "size": 1}; !maps.Equal(s.Requests.ByPath, want) {
		t.Errorf("requests.by_path: got %v, want %v", s.Requests.ByPath, want)
	}
}
