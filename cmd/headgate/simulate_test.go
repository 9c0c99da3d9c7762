package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSimulateKeepsItsInputs: a page never replaces an input, and a flag that the user wrote without effect is a fault.
func TestSimulateKeepsItsInputs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	own, scenario := filepath.Join(folder, "headgate.yaml"), filepath.Join(folder, "scenario.yaml")
	texts := map[string]string{
		own:      "version: 1\nrules: [{name: a, key: [ip], limits: [1/m]}]\n",
		scenario: "length: 1m\nclients: [{name: a, traffic: constant, rate: 1/s}]\n",
	}
	for name, text := range texts {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	play := []string{"simulate", "--config", own, "--scenario", scenario}
	for want, more := range map[string][]string{
		"--html " + own + " would overwrite --config":        {"--html", own},
		"--html " + scenario + " would overwrite --scenario": {"--html", scenario},
		"--html is -: standard output has the report":        {"--html", "-"},
		"--rate has no effect with --scenario":               {"--rate", "1/s"},
		"--traffic has no effect with --scenario":            {"--traffic", "poisson"},
	} {
		var stdout, stderr bytes.Buffer
		if status := run(append(slices.Clip(play), more...), &stdout, &stderr); status != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: status %d, want %q in %s", more, status, want, stderr.String())
		}
	}
	for name, text := range texts {
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("%s is now %q (error %v)", name, got, err)
		}
	}
}
