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

// instructions returns the Dockerfile's instructions with their arguments.
func instructions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(deployFolder, "Dockerfile")))) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		if _, twice := found[name]; twice {
			t.Errorf("the Dockerfile has %s twice", name)
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
		t.Errorf("the base image is %s, %s", of["ARG"], of["FROM"])
	}
	if of["USER"] != "65532:65532" || *sidecar.SecurityContext.RunAsUser != 65532 || *sidecar.SecurityContext.RunAsGroup != 65532 {
		t.Errorf("the image runs as user %s, the chart as %+v", of["USER"], sidecar.SecurityContext)
	}
	if of["COPY"] != "headgate /headgate" || !slices.Equal(words(t, of["ENTRYPOINT"]), []string{"/headgate"}) {
		t.Errorf("the image copies %s and runs %s", of["COPY"], of["ENTRYPOINT"])
	}
	if !slices.Equal(words(t, of["CMD"]), sidecar.Args) {
		t.Errorf("the image has the arguments %s, the chart has %q", of["CMD"], sidecar.Args)
	}
	if of["EXPOSE"] != "8080 9903" {
		t.Errorf("the image exposes %s", of["EXPOSE"])
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
		t.Error("the Dockerfile does not say how the binary is built")
	}
	f, err := elf.Open(binary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the binary needs the libraries %q, %v", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a loader")
		}
	}
	// The environment and the working folder are empty.
	run := exec.CommandContext(t.Context(), binary(t), "version")
	run.Env, run.Dir = []string{}, t.TempDir()
	if out, err := run.CombinedOutput(); err != nil || len(out) == 0 {
		t.Errorf("headgate version: %v\n%s", err, out)
	}
}

// TestOneFileEach checks that the dashboard and the alerts are the same files inside and outside of
// the chart. The chart must contain them, and people look for them beside the chart.
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
			t.Errorf("%s is not a link to %s", beside, own)
		}
	}
}
