package config

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/internal/readfile"
	"github.com/headgate/headgate/internal/testkit/fifo"
)

// TestAPipeIsNotRead: a pipe in place of the configuration is rejected at once.
func TestAPipeIsNotRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := fifo.Make(pipe); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(pipe); !errors.Is(err, readfile.ErrNotRegular) {
		t.Errorf("got %v, want %v", err, readfile.ErrNotRegular)
	}
}
