package lease

import (
	"net/http"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/lease/front"
	"github.com/headgate/headgate/internal/lease/state"
)

// maxHoldersListed bounds the holders of an answer, and shownHolder the shown bytes of their names.
const (
	maxHoldersListed = 1000
	shownHolder      = 6
	// maxServersListed bounds the servers below one resource, and maxServersOfAll those of an answer.
	maxServersListed, maxServersOfAll = 20, 2000
)

// list answers GET /api/v1/leases.
func (c *Component) list(w http.ResponseWriter, r *http.Request) {
	l := c.granted
	if l == nil {
		calls.WriteText(w, http.StatusNotFound, admin.NoLeases)
		return
	}
	answer := admin.Leases{Child: l.up != nil, Resources: []admin.LeasedResource{}}
	if l.up != nil {
		answer.Parent = l.up.Parent()
	}
	answer.Mine, answer.Master = l.service.Master()
	answer.Limits = l.limits.state()
	if l.candidate != nil {
		answer.Group = l.candidate.group
		if answer.Mine {
			answer.Master = l.candidate.address
		}
	}
	name := r.URL.Query().Get("resource")
	if name == "" {
		left := maxServersOfAll
		for _, resource := range l.service.Resources() {
			one := leased(&resource)
			servers, more := l.service.Servers(resource.Name, min(maxServersListed, left))
			for i := range servers {
				one.Servers = append(one.Servers, holderOf(&servers[i], resource.Slots))
			}
			one.MoreServers = more
			left -= len(servers)
			answer.Resources = append(answer.Resources, one)
		}
		calls.WriteJSON(c.log, w, answer)
		return
	}
	resource, holders, found := l.service.Holders(name, maxHoldersListed)
	if !found && !answer.Mine {
		calls.WriteJSON(c.log, w, answer)
		return
	}
	if !found {
		calls.WriteText(w, http.StatusNotFound, admin.NoClaim)
		return
	}
	one := leased(&resource)
	for i := range holders {
		one.Holders = append(one.Holders, holderOf(&holders[i], resource.Slots))
	}
	answer.Resources = append(answer.Resources, one)
	calls.WriteJSON(c.log, w, answer)
}

// units converts an amount.
func units(amount int64, slots bool) float64 {
	if slots {
		return float64(amount)
	}
	const thousandths = 1000
	return float64(amount) / thousandths
}

func leased(resource *front.Resource) admin.LeasedResource {
	u := &resource.Usage
	unit := "rate"
	if u.Slots {
		unit = "in_flight"
	}
	return admin.LeasedResource{
		Name: resource.Name, Unit: unit, Capacity: units(u.Capacity, u.Slots), Wants: units(u.Wants, u.Slots),
		Has:    units(u.Granted, u.Slots),
		Ledger: units(u.Ledger, u.Slots), Unknown: units(u.Unknown, u.Slots), Claims: u.Claims, EndSeconds: u.End.Seconds(),
	}
}

func holderOf(h *state.HolderUsage, slots bool) admin.LeaseHolder {
	return admin.LeaseHolder{
		Holder: h.Holder[:min(len(h.Holder), shownHolder)], Caller: h.Caller, Wants: units(h.Wants, slots), Has: units(h.Granted, slots),
		Ledger: units(h.Ledger, slots), Below: belowOf(h), EndSeconds: h.End.Seconds(),
	}
}

// belowOf is the number of holders below a server.
func belowOf(h *state.HolderUsage) int64 {
	if !h.Server {
		return 0
	}
	return h.Holders
}
