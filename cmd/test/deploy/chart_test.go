package deploy

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// deployFolder contains the files under test.
var deployFolder = filepath.Join("..", "..", "..", "docs", "deploy")

var chartFolder = filepath.Join(deployFolder, "helm", "headgate")

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Helm's engine logs to the default logger of slog, which would clutter the test output.
	dir, err := os.MkdirTemp("", "headgate-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaryFolder = dir
	return m.Run()
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// least sets only the required values.
const least = `
app: {image: {repository: kyc}}
fairShare: {capacity: 400}
`

// valuesOf merges values over the required values.
func valuesOf(t *testing.T, texts ...string) map[string]any {
	t.Helper()
	values := map[string]any{}
	for _, text := range append([]string{least}, texts...) {
		more := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &more); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		values = loader.MergeMaps(values, more)
	}
	return values
}

// render returns the objects of a release kyc in the namespace bank, by template name.
func render(c *chart.Chart, values map[string]any) (map[string]string, error) {
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "kyc", Namespace: "bank", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]string{}
	for path, text := range texts {
		if name := filepath.Base(path); strings.TrimSpace(text) != "" && !strings.HasPrefix(name, "_") {
			objects[name] = text
		}
	}
	return objects, nil
}

// rendered calls render for values that must be valid.
func rendered(t *testing.T, texts ...string) map[string]string {
	t.Helper()
	objects, err := render(loadChart(t), valuesOf(t, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// names returns the sorted names of the templates that rendered an object.
func names(objects map[string]string) []string { return slices.Sorted(maps.Keys(objects)) }

// into parses an object strictly: an unknown or repeated field is an error.
func into[T any](t *testing.T, objects map[string]string, name string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(objects[name]), object); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, objects[name])
	}
	return object
}
