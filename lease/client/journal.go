package client

import (
	"log/slog"
	"time"
)

// journal writes at most one line of a kind every 10 s. The lock of the client guards it.
type journal struct {
	to              *slog.Logger
	lost            bool // said last
	faultAt, lossAt time.Time
	faults          int // without a line since the last one
}

const logEvery = 10 * time.Second

// fault writes a line about a server.
func (j *journal) fault(text string, args ...any) {
	if now := time.Now(); j.faultAt.IsZero() || now.Sub(j.faultAt) >= logEvery {
		j.to.Warn("lease: "+text, append(args, "not_logged", j.faults)...) //nolint:sloglint // all callers give a constant
		j.faultAt, j.faults = now, 0
		return
	}
	j.faults++
}

// losses writes a line when leases have ended, and one when all are valid again.
func (j *journal) losses(lost int, resource string, mode OnLoss) {
	if j.lost == (lost > 0) {
		return
	}
	now := time.Now()
	if !j.lossAt.IsZero() && now.Sub(j.lossAt) < logEvery {
		return // The next look says it if it is still true.
	}
	j.lost, j.lossAt = lost > 0, now
	if j.lost {
		j.to.Warn("lease: leases have ended without renewal: on_loss decides until a server answers", "leases", lost, "resource", resource,
			"on_loss", mode.String())
		return
	}
	j.to.Info("lease: all leases are valid again")
}
