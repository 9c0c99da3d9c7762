package memory_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/onekey"
	"github.com/headgate/headgate/store/memory"
)

// TestOneKey: an operator reads, resets and bans a key while 64 callers take its units.
func TestOneKey(t *testing.T) {
	onekey.Run(t, func(t *testing.T) headgate.Store {
		t.Helper()
		store, err := memory.New(memory.Config{MaxMemory: 16 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
}
