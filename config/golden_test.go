package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rewrite renews the .want files. Read what changes: each position must be right
// and each fix must help.
var rewrite = flag.Bool("rewrite", false, "write what is found to the .want files of testdata")

// TestFaults holds, for each malformed file of testdata/faults, the exact text of
// all its faults. A file is named by its fault.
func TestFaults(t *testing.T) {
	files := testdata(t, "faults")
	if len(files) < 300 {
		t.Errorf("testdata/faults has %d files, fewer than 300", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			c, err := Parse(filepath.Base(file), read(t, file))
			if err == nil {
				t.Fatalf("the file is accepted: %+v", c)
			}
			compare(t, file, err.Error()+"\n")
		})
	}
}

// TestAccepted holds, for each file of testdata/ok, what headgate check says of it.
func TestAccepted(t *testing.T) {
	for _, file := range testdata(t, "ok") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			c, err := Parse(filepath.Base(file), read(t, file))
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := c.WriteSummary(&b); err != nil {
				t.Fatal(err)
			}
			compare(t, file, b.String())
		})
	}
}

func testdata(tb testing.TB, folder string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("testdata/%s has no files: %v", folder, err)
	}
	return files
}

func read(tb testing.TB, file string) []byte {
	tb.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// compare holds got against the .want file beside file.
func compare(t *testing.T, file, got string) {
	t.Helper()
	golden := strings.TrimSuffix(file, ".yaml") + ".want"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(read(t, golden)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
