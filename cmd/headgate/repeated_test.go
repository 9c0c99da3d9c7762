package main

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestRepeatedFlags: a flag that takes one value is refused if it is given twice. Of two addresses, none is silently left out.
func TestRepeatedFlags(t *testing.T) {
	one := instance(t, admin.ReloadStatus{})
	for _, row := range []struct {
		args    string
		refused string
	}{
		{"ctl status --admin " + one.URL + " --admin 127.0.0.1:1", "--admin"},
		{"ctl --admin 127.0.0.1:1 status --admin " + one.URL, "--admin"},
		{"ctl reload --admin=" + one.URL + " --admin=" + one.URL, "--admin"},
		{"ctl top --top 1 --top 2 --admin " + one.URL, "--top"},
		{"ctl quota set a note=x --reason a --reason b --admin " + one.URL, "--reason"},
		{"check --config a --config b", "--config"},
		{"proxy --config a --config b", "--config"},
		{"ctl limit get --etcd 127.0.0.1:1 --prefix /a/ --prefix /b/", "--prefix"},
		{"ctl status --json --json --admin " + one.URL, ""},
		{"token a --scope read --scope decide", ""},
	} {
		status, _, stderr := call(t, strings.Fields(row.args)...)
		want := row.refused + " is given more than once, and takes one value: give it once\n"
		if refused := status == exitUsage && strings.Contains(stderr, want); refused != (row.refused != "") {
			t.Errorf("%s: status %d, %s", row.args, status, stderr)
		}
	}
}
