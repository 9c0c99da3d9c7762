package headgate_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestASmallProgramLinksNoClient checks a program that loads a file, uses httplimit and
// counts in memory. The program links no client of a shared store, no reader of
// region databases and no client of a configuration server. The program imports the packages of config's ExampleConfig_GuardConfig.
func TestASmallProgramLinksNoClient(t *testing.T) {
	listed := dependencies(t, "./config", "./guard", "./middleware/httplimit", "./store/memory")
	if !listed["github.com/headgate/headgate/store/memory"] || len(listed) < 50 {
		t.Fatalf("go list: got %d packages, want at least 50 with store/memory", len(listed))
	}
	for _, client := range []string{
		"github.com/redis/rueidis", "github.com/oschwald/maxminddb-golang", "google.golang.org/grpc",
		modulePath + "/store/redis", modulePath + "/store/memcached",
	} {
		for name := range listed {
			if name == client || strings.HasPrefix(name, client+"/") {
				t.Errorf("the program links %s", name)
			}
		}
	}
	// This check fails when a client package is renamed, so that the check above stays valid.
	for _, client := range []string{"github.com/redis/rueidis", "github.com/oschwald/maxminddb-golang/v2", modulePath + "/store/memcached"} {
		if !dependencies(t, "./config/open")[client] {
			t.Errorf("config/open does not link %s", client)
		}
	}
}

// dependencies returns the packages that the given packages link.
func dependencies(t *testing.T, packages ...string) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, packages...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for name := range strings.FieldsSeq(string(out)) {
		listed[name] = true
	}
	return listed
}
