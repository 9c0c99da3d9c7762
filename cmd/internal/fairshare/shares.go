package fairshare

import (
	"net/http"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
)

// List returns the current shares. It returns false when fair share is off.
func (c *Component) List() (admin.Shares, bool) {
	now, settings, ok := c.shares()
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
		one := &now.Clients[n]
		s.Clients[n] = admin.ClientShare{
			Client: one.Client, Demand: one.Demand, Size: one.Size, Borrowed: one.Borrowed, Lent: one.Lent,
			Seen: one.Seen, Admitted: one.Admitted, Refused: one.Refused,
			Weight: one.Weight, Default: one.Default, Pinned: one.Pinned, Lasting: one.Lasting,
			AdmittedTotal: one.AdmittedTotal, RefusedTotal: one.RefusedTotal,
		}
	}
	return s, true
}

func (c *Component) list(w http.ResponseWriter, _ *http.Request) {
	s, ok := c.List()
	if !ok {
		calls.WriteText(w, http.StatusNotFound, admin.NoFairShare)
		return
	}
	calls.WriteJSON(c.log, w, s)
}
