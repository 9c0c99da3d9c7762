package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestCommandLines compares the help of each command and the errors of wrong command lines with a golden file.
func TestCommandLines(t *testing.T) {
	const golden = "testdata/commandlines.golden"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COLUMNS", "80")
	t.Setenv("HEADGATE_CONFIG", "nofile.yaml")
	var got bytes.Buffer
	for line := range strings.Lines(string(want)) {
		args, is := strings.CutPrefix(line, "$ headgate")
		if !is {
			continue
		}
		fields := strings.Fields(args)
		for i := range fields {
			fields[i] = strings.ReplaceAll(fields[i], `""`, "")
		}
		status, stdout, stderr := call(t, fields...)
		fmt.Fprintf(&got, "%s%s%sstatus %d\n\n", line, stdout, stderr, status)
	}
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, line := range strings.Split(got.String(), "\n") {
		if rest := strings.Split(string(want), "\n"); i >= len(rest) || rest[i] != line {
			t.Fatalf("line %d of %s is not %q: run go test -update if the change is wanted", i+1, golden, line)
		}
	}
}
