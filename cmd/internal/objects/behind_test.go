package objects

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate/cmd/internal/admin/calls"
)

// at is a source at a position.
type at struct {
	Followed

	position int64
}

func (a *at) Position() int64 { return a.position }

// TestInstanceBehind: an instance that has not followed the last write checks nothing, and writes nothing.
func TestInstanceBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &at{position: 6}
		i := &Component{Followed: m}
		if i.awaitPosition(t.Context(), 7) {
			t.Error("the instance has position 6, and waits for 7: got true")
		}
		m.position = 7
		if !i.awaitPosition(t.Context(), 7) {
			t.Error("the instance has position 7: got false")
		}
	})
	if failed := calls.Unavailable(errBehind); failed.Status != 503 || !strings.Contains(failed.Error, "nothing was changed") {
		t.Errorf("got %+v", failed)
	}
}
