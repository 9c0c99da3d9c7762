package admin

import "time"

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
