package reference

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestClient runs the client program of the reference with headgate server.
func TestClient(t *testing.T) {
	p := buildAll(t)
	root := t.TempDir()
	folder := filepath.Join(root, "config")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(folder, "d.yaml"), "domain: d\ndescriptors:\n"+
		"- {key: a, descriptors: [{key: b, rate_limit: {unit: year, requests_per_unit: 2}}]}\n")
	at := startReplacement(t, p.headgate, root).grpc
	for n, c := range []struct{ domain, descriptors, want string }{
		{"d", "a=1,b=2", "overall_code:OK statuses:{code:OK current_limit:{requests_per_unit:2 unit:YEAR} limit_remaining:1 duration_until_reset:"},
		{"d", "a=1,b=2", "overall_code:OK statuses:{code:OK current_limit:{requests_per_unit:2 unit:YEAR} duration_until_reset:"},
		{"d", "a=1,b=2", "overall_code:OVER_LIMIT statuses:{code:OVER_LIMIT current_limit:{requests_per_unit:2 unit:YEAR} duration_until_reset:"},
		{"d", "a=1,b=3", "overall_code:OK statuses:{code:OK current_limit:{requests_per_unit:2 unit:YEAR} limit_remaining:1 duration_until_reset:"},
		{"d", "a=1", "overall_code:OK statuses:{code:OK}"},
		{"", "a=1", "request error: rpc error: code = InvalidArgument desc = rate limit domain must not be empty"},
	} {
		text, err := exec.CommandContext(t.Context(), p.client, "-dial_string", at, "-domain", c.domain, "-descriptors", c.descriptors).CombinedOutput()
		got := strings.Join(strings.Fields(string(text)), " ") // The text of a message has one or two spaces between fields.
		if !strings.Contains(got, c.want) || (err != nil) != strings.Contains(c.want, "error") {
			t.Errorf("call %d: %v, got\n%s\nwant %s", n, err, text, c.want)
		}
	}
}
