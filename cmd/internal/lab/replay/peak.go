package replay

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/replay/tally"
	"github.com/headgate/headgate/guard"
)

// rise adds units to the peak of a limit of a key. Package tally has sliding windows: an aligned window is one of its times.
func (t *trial) rise(key *tally.Key, r *guard.Rule, l *guard.Result, at headgate.Instant, units int64) {
	if l.Window >= len(r.Policies) || l.Algorithm() == headgate.Ban || l.Limit != r.Policies[l.Window].Limit {
		return // It has a limit of its own, or is no limit.
	}
	per := l.Limit.Length()
	switch {
	case l.Limit.Calendar != headgate.NoCalendar: // Only the guard knows the edges.
	case l.Algorithm() == headgate.FixedWindow:
		t.keys.Rise(key, l.Window, at-at%headgate.Instant(per), 1, units)
	default:
		t.keys.Rise(key, l.Window, at, per, units)
	}
}
