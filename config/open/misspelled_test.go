package open

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

// TestLibraryTellsOfMisspelledVariables: a program reads its configuration with the variables of
// the environment.
func TestLibraryTellsOfMisspelledVariables(t *testing.T) {
	t.Setenv("HEADGATE_MAX_MEMROY", "1MiB")
	logged := defaultLog(t)
	const text = "version: 1\nrules: []\n"
	if _, err := Guard(parsed(t, text)); err != nil || strings.Contains(logged.String(), "HEADGATE_MAX_MEMROY") {
		t.Errorf("Parse looks at no variable: %v, logged %s", err, logged)
	}
	c, err := config.LoadText(filepath.Join(t.TempDir(), "headgate.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Guard(c); err != nil || !strings.Contains(logged.String(), "did you mean HEADGATE_MAX_MEMORY?") {
		t.Errorf("%v, logged %s", err, logged)
	}
}
