package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
)

// rewrite updates the .want files. Review the changes: each position must be correct,
// and each fix must help.
var rewrite = flag.Bool("rewrite", false, "update the .want files of testdata")

// TestFaults compares the exact text of all faults of each malformed file in testdata/faults. The
// name of a file describes its fault.
func TestFaults(t *testing.T) {
	files := testdata(t, "faults")
	if len(files) < 300 {
		t.Errorf("testdata/faults has %d files, fewer than 300", len(files))
	}
	for i, file := range files {
		if i%race.Fewer(1, 10) > 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			c, err := Parse(filepath.Base(file), read(t, file))
			if err == nil {
				t.Fatalf("the file is accepted, want faults: %+v", c)
			}
			compare(t, file, err.Error()+"\n")
		})
	}
}

// TestAccepted compares the output of headgate check for each file in testdata/ok.
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
		tb.Fatalf("testdata/%s has no files (error %v)", folder, err)
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

// compare compares got with the .want file next to file.
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
