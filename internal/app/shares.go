package app

import (
	"net/http"
	"time"
)

// NoFairShare is what /api/v1/shares says of an instance that has none.
const NoFairShare = "this instance has no fair share: configure one, as in " +
	"fair_share: {client: header:X-Client-Id, capacity: 40, cycle: 1s}, with what the service behind can take"

// Shares is what /api/v1/shares tells, in units. Programs read it: fields are added,
// and none is renamed or moved.
type Shares struct {
	// Cycle counts the cycles since the start.
	Cycle    uint64        `json:"cycle"`
	Capacity int64         `json:"capacity"`
	Clients  []ClientShare `json:"clients"` // by name

	Mode         string  `json:"mode"` // enforce or shadow
	Division     string  `json:"division"`
	Reclaim      string  `json:"reclaim"`
	CycleSeconds float64 `json:"cycle_seconds"`
	// Started is when this cycle began, and Ends when the next begins.
	Started time.Time `json:"started"`
	Ends    time.Time `json:"ends"`
	// Admitted is what is used of this cycle's capacity; LastAdmitted was of the
	// cycle's before, which was LastCapacity.
	Admitted     int64 `json:"admitted"`
	LastAdmitted int64 `json:"last_admitted"`
	LastCapacity int64 `json:"last_capacity"`
}

// ClientShare is what one client has, in units.
type ClientShare struct {
	Client string `json:"client"`
	// Demand is that of the last full cycle, which Size came from.
	Demand   int64 `json:"demand"`
	Size     int64 `json:"size"`
	Borrowed int64 `json:"borrowed"`
	Lent     int64 `json:"lent"`
	// Seen is what it asked for in this cycle, Admitted and Refused what became of it.
	Seen     int64 `json:"seen"`
	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"`

	Weight  int64 `json:"weight"`
	Default int64 `json:"default"`
	Pinned  bool  `json:"pinned"`
	// Lasting says that it was established an hour ago: its default share is protected.
	Lasting bool `json:"lasting"`
	// AdmittedTotal and RefusedTotal count since the client is known.
	AdmittedTotal uint64 `json:"admitted_total"`
	RefusedTotal  uint64 `json:"refused_total"`
}

// FairShareStatus is fair share in short.
type FairShareStatus struct {
	Mode         string  `json:"mode"`
	Capacity     int64   `json:"capacity"`
	CycleSeconds float64 `json:"cycle_seconds"`
	Clients      int     `json:"clients"`
	LastAdmitted int64   `json:"last_admitted"`
	LastCapacity int64   `json:"last_capacity"`
	// Allowed and Refused count requests; Reasons counts them by reason.
	Allowed uint64            `json:"allowed"`
	Refused uint64            `json:"refused"`
	Reasons map[string]uint64 `json:"reasons"`
}

// Shares tells who has what of the capacity now; false is without fair share.
func (i *Instance) Shares() (Shares, bool) {
	now, settings, ok := i.shares()
	if !ok {
		return Shares{}, false
	}
	s := Shares{
		Cycle: now.Cycle, Capacity: now.Capacity, Clients: make([]ClientShare, len(now.Clients)),
		Mode: settings.Mode.String(), Division: settings.Division.String(), Reclaim: settings.Reclaim.String(),
		CycleSeconds: now.Length.Seconds(), Started: now.Start.Time(), Ends: now.End.Time(),
		Admitted: now.Admitted, LastAdmitted: now.LastAdmitted, LastCapacity: now.LastCapacity,
	}
	for n := range now.Clients {
		c := &now.Clients[n]
		s.Clients[n] = ClientShare{
			Client: c.Client, Demand: c.Demand, Size: c.Size, Borrowed: c.Borrowed, Lent: c.Lent,
			Seen: c.Seen, Admitted: c.Admitted, Refused: c.Refused,
			Weight: c.Weight, Default: c.Default, Pinned: c.Pinned, Lasting: c.Lasting,
			AdmittedTotal: c.AdmittedTotal, RefusedTotal: c.RefusedTotal,
		}
	}
	return s, true
}

func (i *Instance) listShares(w http.ResponseWriter, _ *http.Request) {
	s, ok := i.Shares()
	if !ok {
		say(w, http.StatusNotFound, NoFairShare)
		return
	}
	i.tell(w, s)
}
