package open

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/config"
)

// parsed parses the text of a configuration.
func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// folder makes a folder with files, and gives its path.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
