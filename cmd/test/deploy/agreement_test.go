package deploy

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// object is a JSON object.
type object = map[string]any

// walker is a position in a JSON Schema.
type walker struct{ root, here object }

// at returns the position below o with the given names. It follows $ref.
func (o walker) at(names ...string) walker {
	for _, name := range names {
		inner, _ := o.here[name].(object)
		if ref, found := inner["$ref"].(string); found {
			inner, _ = o.root["$defs"].(object)[strings.TrimPrefix(ref, "#/$defs/")].(object)
		}
		o.here = inner
	}
	return o
}

func schemaOf(t *testing.T, text []byte) walker {
	t.Helper()
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return walker{o, o}
}

// valueName converts the name of a setting, like max_cost, to its name in the chart, like maxCost.
func valueName(setting string) string {
	return regexp.MustCompile(`_[a-z]`).ReplaceAllStringFunc(setting, func(s string) string { return strings.ToUpper(s[1:]) })
}

// TestFairShareAgrees checks that the chart has every setting of fair_share, with the same bounds,
// enums and defaults.
func TestFairShareAgrees(t *testing.T) {
	text, err := exec.CommandContext(t.Context(), binary(t), "check", "--schema").Output()
	if err != nil {
		t.Fatal(err)
	}
	settings := schemaOf(t, text).at("properties", "fair_share", "properties")
	values := schemaOf(t, read(t, filepath.Join(chartFolder, "values.schema.json"))).at("properties", "fairShare", "properties")
	var defaults struct {
		FairShare object `json:"fairShare"` //nolint:tagliatelle // Helm charts use camelCase
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(chartFolder, "values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	if len(settings.here) < 15 {
		t.Fatalf("fair_share has %d settings, want at least 15: %v", len(settings.here), settings.here)
	}
	for setting := range settings.here {
		if setting == "mode" { // The chart uses enabled: false instead of mode: off.
			continue
		}
		name := valueName(setting)
		ours, theirs := values.at(name), settings.at(setting)
		if ours.here == nil {
			t.Errorf("values.schema.json has no value fairShare.%s", name)
			continue
		}
		for _, word := range []string{"minimum", "maximum", "enum", "minLength", "maxLength", "maxProperties"} {
			if !reflect.DeepEqual(ours.here[word], theirs.here[word]) {
				t.Errorf("fairShare.%s: got %s %v, want %v as in fair_share.%s", name, word, ours.here[word], theirs.here[word], setting)
			}
		}
		if want, found := theirs.here["default"]; found && name != "cost" && !reflect.DeepEqual(defaults.FairShare[name], want) {
			t.Errorf("fairShare.%s: got default %v, want %v as in fair_share.%s", name, defaults.FairShare[name], want, setting)
		}
	}
	for _, setting := range []string{"client", "count_once"} {
		if a, b := values.at(valueName(setting)).here["pattern"], settings.at(setting).here["pattern"]; a != b {
			t.Errorf("fairShare.%s: got pattern %v, want %v as in fair_share.%s", valueName(setting), a, b, setting)
		}
	}
}
