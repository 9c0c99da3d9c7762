package open

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/readfile"
	"github.com/headgate/headgate/internal/testkit/fifo"
)

// TestPipesAreNotRead: a named pipe is refused at once, in place of any file of a store or of
// the identity.
func TestPipesAreNotRead(t *testing.T) {
	folder := t.TempDir()
	path, pipe := filepath.Join(folder, "headgate.yaml"), filepath.Join(folder, "pipe")
	if err := fifo.Make(pipe); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, readfile.ErrNotRegular) {
			t.Errorf("%s: got %v, want %v", what, err, readfile.ErrNotRegular)
		}
	}
	for _, setting := range []string{
		"store_password_file: pipe", "store_tls: {ca: pipe}", "store_tls: {cert: pipe, key: pipe}",
	} {
		text := fmt.Sprintf("version: 1\nstore: rediss://127.0.0.1:1\n%s\nrules: []\n", setting)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path)
		if err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
		_, err = Store(c, Options{})
		refused(setting, err)
	}
	for _, setting := range []string{"region_db: pipe", "jwt: {keys: pipe}"} {
		text := fmt.Sprintf("version: 1\nidentity: {%s}\nrules: []\n", setting)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path)
		if err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
		if _, err := Guard(c); err == nil {
			t.Errorf("%s is taken", setting)
		}
	}
}
