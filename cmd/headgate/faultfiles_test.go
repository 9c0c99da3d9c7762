package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestCommandsRefuseFaultyFiles starts each command that reads a configuration with each malformed file of package config. All of them
// print the same faults, each with its file, line and column, and end with the status of a wrong configuration.
func TestCommandsRefuseFaultyFiles(t *testing.T) {
	files, err := filepath.Glob("../../internal/config/testdata/faults/*.yaml")
	if err != nil || len(files) < 990 {
		t.Fatalf("%d files (%v), want at least 990", len(files), err)
	}
	commands := [][]string{
		{"proxy"}, {"server"}, {"check"}, // These read every file, the others every tenth.
		{"server", "--envoy-config", t.TempDir()}, {"check", "--offline"}, {"check", "--explain", "GET /"},
	}
	done := make(chan struct{})
	go func() { // A command that starts would serve until the end of the test.
		defer close(done)
		for i, file := range files {
			if i%race.Fewer(1, 10) > 0 {
				continue
			}
			text, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".want")
			if err != nil {
				t.Error(err)
				return
			}
			want := strings.ReplaceAll(string(text), filepath.Base(file), file)
			if !placed.MatchString(want) {
				t.Errorf("%s: no fault has a place:\n%s", file, want)
			}
			for n, args := range commands {
				if n > 2 && i%10 > 0 {
					break
				}
				status, _, got := call(t, append(slices.Clip(args), "--config", file)...)
				if status != exitUsage || got != want {
					t.Errorf("headgate %s: %s: status %d:\n%s\nwant\n%s", args, file, status, got, want)
				}
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Fatal("a command serves a faulty file")
	}
}
