package fairshare

import (
	"net/http"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/rule"
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

// list shows the names of clients to callers that may administer, and to others as logs name them.
func (c *Component) list(w http.ResponseWriter, r *http.Request) {
	s, ok := c.List()
	if !ok {
		calls.WriteText(w, http.StatusNotFound, admin.NoFairShare)
		return
	}
	if settings := settingsOf(c.config.Load()); settings != nil && !access.MayAdminister(r.Context()) {
		hide(s.Clients, settings.Client, c.report.KeyNames())
	}
	calls.WriteJSON(c.log, w, s)
}

// hide names clients as logs do; names is nil with log.keys off.
func hide(clients []admin.ClientShare, part rule.Part, names *rule.KeyNames) {
	for i := range clients {
		clients[i].Client = ShownName(clients[i].Client, part, names)
	}
}

// ShownName is the name of a client for callers that may not administer. names are those of the log, and nil with log.keys off.
func ShownName(client string, part rule.Part, names *rule.KeyNames) string {
	switch {
	case client == fairshare.Others:
		return client
	case names == nil:
		return ""
	default:
		return string(names.AppendClient(nil, part, client))
	}
}
