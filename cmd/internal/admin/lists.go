package admin

import (
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// Bans is the answer of /api/v1/bans.
type Bans struct {
	// Now is the time of the store's clock. Compare Until with Now.
	Now  time.Time        `json:"now"`
	Bans []guard.BanEntry `json:"bans"`
	// More reports that the instance has more bans than it lists.
	More bool `json:"more"`
}

// KeysOff is the answer of /api/v1/top while log.keys is off.
const KeysOff = "log.keys is off: write hash or plain to see keys"

// UnknownName begins the answer of /api/v1/top for a name under which no decision is reported.
const UnknownName = "no rule or limit has the name "

// Top is the answer of /api/v1/top.
type Top struct {
	report.TopKeys
}
