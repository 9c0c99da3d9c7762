package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlotsAreCurrent: the pictures in docs/plots are what the code draws.
func TestPlotsAreCurrent(t *testing.T) {
	drawn := map[string]bool{}
	for _, scene := range scenes() {
		p, err := scene()
		if err != nil {
			t.Fatal(err)
		}
		want, err := p.draw()
		if err != nil {
			t.Fatalf("%s: %v", p.file, err)
		}
		drawn[p.file] = true
		got, err := os.ReadFile(filepath.Join(folder, p.file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code draws (%d bytes, want %d, %v): run `go run .` in cmd/test/plots, look at it, and commit it", p.file, len(got), len(want), err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), "pacing-") && !drawn[file.Name()] {
			t.Errorf("nothing draws %s: remove it", file.Name())
		}
	}
}
