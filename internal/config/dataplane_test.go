package config

import (
	"testing"
)

// TestDataPlaneNote: the note appears where the file or a variable sets the data plane, and names which.
func TestDataPlaneNote(t *testing.T) {
	const remove = ": the next version does not have this setting; "
	const fast = remove + "fast is the default: remove the setting"
	const standard = remove + "standard serves all requests with net/http, which takes more processor time than the default: " +
		"remove the setting, and report what fails without it"
	const proxy = "version: 1\nrules: []\nproxy: {upstream: 'https://a'"
	for _, row := range []struct{ text, variable, want string }{
		{proxy + "}\n", "", ""},
		{proxy + ", data_plane: fast}\n", "", "proxy.data_plane" + fast},
		{proxy + ", data_plane: standard}\n", "", "proxy.data_plane" + standard},
		{proxy + "}\n", "standard", "HEADGATE_PROXY_DATA_PLANE" + standard},
		{proxy + ", data_plane: standard}\n", "fast", "HEADGATE_PROXY_DATA_PLANE" + fast},
		{"version: 1\nrules: []\n", "", ""},
	} {
		t.Setenv("HEADGATE_PROXY_DATA_PLANE", row.variable)
		c, err := LoadText("test.yaml", []byte(row.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Proxy.DataPlaneNote(); got != row.want {
			t.Errorf("%s variable %q: got the note %q, want %q", row.text, row.variable, got, row.want)
		}
		want := DataPlaneFast
		if row.variable == "standard" || row.variable == "" && row.want == "proxy.data_plane"+standard {
			want = DataPlaneStandard
		}
		if c.Proxy.DataPlane != want {
			t.Errorf("%s variable %q: data plane %s, want %s", row.text, row.variable, c.Proxy.DataPlane, want)
		}
	}
}
