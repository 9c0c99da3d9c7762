package proxy

import (
	"log/slog"
	"testing"

	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// TestDroppedLinesNeverGoDown: the lines that a former access log has dropped count while it still closes.
func TestDroppedLinesNeverGoDown(t *testing.T) {
	folder := t.TempDir()
	settings := config.Log{Access: config.AccessJSON, AccessFile: folder + "/first.log"}
	host := component.NewHost(slog.New(slog.DiscardHandler), false, nil)
	a, err := NewAccessLog(host, &settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Current().Close()
	a.Current().Write(&accesslog.Entry{}) // A closed log drops it.
	if a.Lost() != 1 {
		t.Fatalf("%d lines are dropped, want 1", a.Lost())
	}
	next := config.Config{Log: settings}
	next.Log.AccessFile = folder + "/second.log"
	change, err := a.Reload(&next)
	if err != nil {
		t.Fatal(err)
	}
	change.Commit()
	if a.Lost() != 1 {
		t.Errorf("after the change, %d lines are dropped, want 1", a.Lost())
	}
	a.Retire()
	if a.Lost() != 1 {
		t.Errorf("while the former log closes, %d lines are dropped, want 1", a.Lost())
	}
	a.closing.Wait()
	if a.Lost() != 1 {
		t.Errorf("after the former log, %d lines are dropped, want 1", a.Lost())
	}
	_ = a.Drain(t.Context())
}
