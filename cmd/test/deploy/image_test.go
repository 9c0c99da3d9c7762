package deploy

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
)

// instructions returns the Dockerfile's instructions with their arguments. Those of several lines of COPY are
// one text with a semicolon between them.
func instructions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(deployFolder, "Dockerfile")))) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		former, twice := found[name]
		switch {
		case twice && name == "COPY":
			rest = former + "; " + rest
		case twice:
			t.Errorf("the Dockerfile has the instruction %s twice", name)
		}
		found[name] = rest
	}
	return found
}

// TestImage checks that the image has only the binary, and runs it with the user and the arguments
// of the chart.
func TestImage(t *testing.T) {
	sidecar := container(t, into[apps.Deployment](t, rendered(t), "deployment.yaml").Spec.Template.Spec, "headgate")
	of := instructions(t)
	if of["ARG"] != "BASE=scratch" || of["FROM"] != "${BASE}" {
		t.Errorf("got ARG %s and FROM %s, want BASE=scratch and ${BASE}", of["ARG"], of["FROM"])
	}
	if of["USER"] != "65532:65532" || *sidecar.SecurityContext.RunAsUser != 65532 || *sidecar.SecurityContext.RunAsGroup != 65532 {
		t.Errorf("got user %s in the image and %+v in the chart, want 65532:65532 in both", of["USER"], sidecar.SecurityContext)
	}
	if of["COPY"] != "headgate /headgate; headgate /bin/ratelimit" || !slices.Equal(words(t, of["ENTRYPOINT"]), []string{"/headgate"}) {
		t.Errorf("got COPY %s and ENTRYPOINT %s, want headgate /headgate; headgate /bin/ratelimit, and /headgate", of["COPY"], of["ENTRYPOINT"])
	}
	if !slices.Equal(words(t, of["CMD"]), sidecar.Args) {
		t.Errorf("got the arguments %s in the image and %q in the chart, want equal arguments", of["CMD"], sidecar.Args)
	}
	if of["EXPOSE"] != "8080 8081 9903 6070 9090" {
		t.Errorf("got EXPOSE %s, want 8080 8081 9903 6070 9090", of["EXPOSE"])
	}
}

func words(t *testing.T, list string) []string {
	t.Helper()
	var all []string
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	return all
}

// TestBinaryIsStatic checks that the build command in the Dockerfile makes a static binary.
func TestBinaryIsStatic(t *testing.T) {
	commands := string(read(t, filepath.Join(deployFolder, "Dockerfile")))
	if !regexp.MustCompile(`(?m)^#\s+CGO_ENABLED=0 make build `).MatchString(commands) {
		t.Error("the comments of the Dockerfile do not contain the build command")
	}
	f, err := elf.Open(binary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("got imported libraries %q, error %v, want none", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic loader, want a static binary")
		}
	}
	// The environment and the working folder are empty.
	run := exec.CommandContext(t.Context(), binary(t), "version")
	run.Env, run.Dir = []string{}, t.TempDir()
	if out, err := run.CombinedOutput(); err != nil || len(out) == 0 {
		t.Errorf("headgate version failed or printed nothing: %v\n%s", err, out)
	}
}

// TestOneFileEach checks that the dashboard and the alerts are the same files inside and outside of
// the chart. The chart needs its own files, and operators look for them in deploy/.
func TestOneFileEach(t *testing.T) {
	for beside, inside := range map[string]string{
		filepath.Join("grafana", "headgate.json"):          "headgate.json",
		filepath.Join("prometheus", "headgate.rules.yaml"): "headgate.rules.yaml",
	} {
		first, err := os.Stat(filepath.Join(deployFolder, beside)) // Stat follows the symbolic link.
		if err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(chartFolder, "files", inside)
		second, err := os.Lstat(own)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(first, second) || !second.Mode().IsRegular() {
			t.Errorf("%s and %s are not the same file: make the first a symbolic link to the second", beside, own)
		}
	}
}
