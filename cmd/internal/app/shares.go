package app

import (
	"net/http"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// shareList returns the current shares. It returns false when fair share is off.
func (r *rules) shareList() (admin.Shares, bool) {
	now, settings, ok := r.shares()
	if !ok {
		return admin.Shares{}, false
	}
	s := admin.Shares{
		Cycle: now.Cycle, Capacity: now.Capacity, Clients: make([]admin.ClientShare, len(now.Clients)),
		Mode: settings.Mode.String(), Division: settings.Division.String(), Reclaim: settings.Reclaim.String(),
		CycleSeconds: now.Length.Seconds(), Started: now.Start.Time(), Ends: now.End.Time(),
		Admitted: now.Admitted, LastAdmitted: now.LastAdmitted, LastCapacity: now.LastCapacity,
	}
	for n := range now.Clients {
		c := &now.Clients[n]
		s.Clients[n] = admin.ClientShare{
			Client: c.Client, Demand: c.Demand, Size: c.Size, Borrowed: c.Borrowed, Lent: c.Lent,
			Seen: c.Seen, Admitted: c.Admitted, Refused: c.Refused,
			Weight: c.Weight, Default: c.Default, Pinned: c.Pinned, Lasting: c.Lasting,
			AdmittedTotal: c.AdmittedTotal, RefusedTotal: c.RefusedTotal,
		}
	}
	return s, true
}

func (r *rules) listShares(w http.ResponseWriter, _ *http.Request) {
	s, ok := r.shareList()
	if !ok {
		writeText(w, http.StatusNotFound, admin.NoFairShare)
		return
	}
	writeJSON(r.log, w, s)
}
