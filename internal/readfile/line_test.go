package readfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/readfile"
)

// TestLine checks valid and invalid files. An error names the file but never shows its
// content.
func TestLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	for text, want := range map[string]string{
		"secret": "", "secret\n": "", "secret\r\n": "",
		"": "is empty: write the key into the file", "\n": "is empty: write the key into the file",
		"s\nx\n": "has several lines: write only the key into the file", "\nsecret": "has several lines: write only the key into the file",
		"secretsecret": "has more than 8 bytes: write only the key into the file",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		line, err := readfile.Line(path, 8, "key")
		switch {
		case want == "":
			if err != nil || line != "secret" {
				t.Errorf("%q: got %q, %v", text, line, err)
			}
		case err == nil || err.Error() != path+" "+want || strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, err := readfile.Line(filepath.Join(folder, "none"), 8, "key"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
