package alone_test

import (
	"os"
	"testing"

	"github.com/headgate/headgate/internal/testkit/alone"
)

// TestHere: the body of a test runs once, in another process.
func TestHere(t *testing.T) {
	folder := os.Getenv("HEADGATE_TEST_ALONE_FOLDER")
	if folder == "" {
		folder = t.TempDir()
		t.Setenv("HEADGATE_TEST_ALONE_FOLDER", folder)
	}
	if alone.Here(t) {
		if err := os.WriteFile(folder+"/ran", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := os.Stat(folder + "/ran"); err != nil {
		t.Errorf("the test did not run in a process of its own: %v", err)
	}
}
