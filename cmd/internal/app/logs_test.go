package app

import (
	"testing"

	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/internal/config"
)

// TestDroppedLinesNeverGoDown: the lines that a former access log has dropped count while it still closes.
func TestDroppedLinesNeverGoDown(t *testing.T) {
	o := options(t)
	folder := t.TempDir()
	o.Config.Log.Access, o.Config.Log.AccessFile = config.AccessJSON, folder+"/first.log"
	a, err := newAccessLog(&o)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.current().Close()
	a.current().Write(&accesslog.Entry{}) // A closed log drops it.
	if a.lost() != 1 {
		t.Fatalf("%d lines are dropped, want 1", a.lost())
	}
	next := *o.Config
	next.Log.AccessFile = folder + "/second.log"
	change, err := a.Reload(&next)
	if err != nil {
		t.Fatal(err)
	}
	change.Commit()
	if a.lost() != 1 {
		t.Errorf("after the change, %d lines are dropped, want 1", a.lost())
	}
	a.retire()
	if a.lost() != 1 {
		t.Errorf("while the former log closes, %d lines are dropped, want 1", a.lost())
	}
	a.closing.Wait()
	if a.lost() != 1 {
		t.Errorf("after the former log, %d lines are dropped, want 1", a.lost())
	}
	_ = a.Drain(t.Context())
}
