package client

import (
	"log/slog"
	"time"
)

// journal writes at most one line of a kind every 10 s. The lock of the client guards it.
type journal struct {
	to     *slog.Logger
	kinds  map[string]*kind // by the text, a constant
	lost   bool             // said last
	lossAt time.Time
}

// kind is what journal knows of one kind of lines.
type kind struct {
	at     time.Time
	faults int // without a line since the last one
}

const logEvery = 10 * time.Second

// fault writes a line about a server. The text is a constant.
func (j *journal) fault(text string, args ...any) {
	k := j.kinds[text]
	if k == nil {
		k = new(kind)
		j.kinds[text] = k
	}
	if now := time.Now(); k.at.IsZero() || now.Sub(k.at) >= logEvery {
		j.to.Warn("lease: "+text, append(args, "not_logged", k.faults)...) //nolint:sloglint // all callers give a constant
		k.at, k.faults = now, 0
		return
	}
	k.faults++
}

// losses writes a line when leases have ended, and one when all are valid again. It returns the time after which it has a
// line that must wait, or 0.
func (j *journal) losses(lost int, resource string, mode OnLoss) (wait time.Duration) {
	if j.lost == (lost > 0) {
		return 0
	}
	now := time.Now()
	if wait = logEvery - now.Sub(j.lossAt); !j.lossAt.IsZero() && wait > 0 {
		return wait
	}
	j.lost, j.lossAt = lost > 0, now
	if j.lost {
		j.to.Warn("lease: leases have ended without renewal: on_loss decides until a server answers", "leases", lost, "resource", resource,
			"on_loss", mode.String())
		return 0
	}
	j.to.Info("lease: all leases are valid again")
	return 0
}
