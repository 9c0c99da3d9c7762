package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/logs"
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
		i.rules.report.Traffic.Served(report.PathFast)
	}
	i.rules.report.Traffic.Served(report.PathSize)
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
