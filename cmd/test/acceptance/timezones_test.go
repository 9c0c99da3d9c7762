package acceptance

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTimeZones: the program has the tables of time zones, for containers without them.
func TestTimeZones(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	for _, zone := range []string{"America/Asuncion", "America/Santiago", "Pacific/Kwajalein", "Asia/Gaza"} {
		if !bytes.Contains(program, []byte(zone)) {
			t.Errorf("the program has no table of %s", zone)
		}
	}
	path := file(t, `version: 1
rules: [{name: api, key: [method], algorithm: fixed_window, limits: [9/month], time_zone: America/Asuncion}]
proxy: {listen: "127.0.0.1:0", upstream: "http://127.0.0.1:1"}
`)
	command := exec.CommandContext(t.Context(), binary, "check", path)
	command.Env = []string{"ZONEINFO=" + t.TempDir()}
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "America/Asuncion") {
		t.Errorf("check of a zone, without tables in the environment: %v\n%s", err, out)
	}
}
