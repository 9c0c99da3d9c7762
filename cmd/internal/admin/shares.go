package admin

import "time"

// NoFairShare is the answer of /api/v1/shares when fair share is off.
const NoFairShare = "fair share is off: configure it, like " +
	"fair_share: {client: header:X-Client-Id, capacity: 40, cycle: 1s}, with the capacity of the service"

// Shares is the answer of /api/v1/shares, in units.
type Shares struct {
	// Cycle counts the cycles since the start of the instance.
	Cycle    uint64        `json:"cycle"`
	Capacity int64         `json:"capacity"`
	Clients  []ClientShare `json:"clients"` // sorted by name

	Mode         string  `json:"mode"` // enforce or shadow
	Division     string  `json:"division"`
	Reclaim      string  `json:"reclaim"`
	CycleSeconds float64 `json:"cycle_seconds"`
	// Started is the start of the current cycle, and Ends is the start of the next.
	Started time.Time `json:"started"`
	Ends    time.Time `json:"ends"`
	// Admitted is the used part of Capacity in the current cycle. LastAdmitted and
	// LastCapacity are the same for the previous cycle.
	Admitted     int64 `json:"admitted"`
	LastAdmitted int64 `json:"last_admitted"`
	LastCapacity int64 `json:"last_capacity"`
}

// ClientShare is the share and the traffic of one client, in units.
type ClientShare struct {
	Client string `json:"client"`
	// Demand is the client's demand in the last full cycle. Size was computed from it.
	Demand   int64 `json:"demand"`
	Size     int64 `json:"size"`
	Borrowed int64 `json:"borrowed"`
	Lent     int64 `json:"lent"`
	// Seen is the client's demand in the current cycle. Admitted and Refused are its parts.
	Seen     int64 `json:"seen"`
	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"`

	Weight  int64 `json:"weight"`
	Default int64 `json:"default"`
	Pinned  bool  `json:"pinned"`
	// Lasting reports whether the client was established at least an hour ago. Newer names
	// do not reduce the default share of a lasting client.
	Lasting bool `json:"lasting"`
	// AdmittedTotal and RefusedTotal count since the client became known.
	AdmittedTotal uint64 `json:"admitted_total"`
	RefusedTotal  uint64 `json:"refused_total"`
}
