package admin

import (
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/report"
)

// Bans is what /api/v1/bans tells. Programs read it: fields are added, and none is
// renamed.
type Bans struct {
	// Now is the time by the store's clock, which Until is to be compared with.
	Now  time.Time        `json:"now"`
	Bans []guard.BanEntry `json:"bans"`
	// More tells of bans beyond those that are remembered by name.
	More bool `json:"more"`
}

// KeysOff is what /api/v1/top answers while log.keys is off.
const KeysOff = "log.keys is off: write hash or plain to see keys"

// Top is what /api/v1/top tells. Programs read it: fields are added, and none is renamed.
type Top struct {
	report.TopKeys
}
