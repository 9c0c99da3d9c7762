package proxy

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

// TestDataPlaneTerms checks the terms of the start line.
func TestDataPlaneTerms(t *testing.T) {
	for _, row := range []struct {
		setting string
		plane   config.DataPlane
		want    string
	}{
		{"", config.DataPlaneFast, "[data_plane fast]"},
		{"proxy.data_plane", config.DataPlaneFast, "[data_plane fast data_plane_note proxy.data_plane: the next version does not have " +
			"this setting; fast is the default: remove the setting]"},
		{"proxy.data_plane", config.DataPlaneStandard, "[data_plane standard data_plane_note proxy.data_plane: the next version does not have " +
			"this setting; standard serves all requests with net/http, which takes more processor time than the default: remove the setting, " +
			"and report what fails without it]"},
	} {
		p := &config.Proxy{DataPlane: row.plane, DataPlaneSetting: row.setting, Upstream: &url.URL{Scheme: "http", Host: "a"}}
		if got := fmt.Sprint(DataPlaneTerms(p)); got != row.want {
			t.Errorf("data_plane %s set by %q: got %s, want %s", row.plane, row.setting, got, row.want)
		}
	}
	if got := DataPlaneTerms(&config.Proxy{DataPlane: config.DataPlaneFast}); got != nil {
		t.Errorf("without a proxy: got %v, want no terms", got)
	}
}
