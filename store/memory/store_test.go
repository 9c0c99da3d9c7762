package memory_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		store, err := memory.New(memory.Config{MaxMemory: 4 << 20, Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
}
