package admin

import (
	"time"

	"github.com/headgate/headgate/guard"
)

// KeyOrder is the body of the calls under /api/v1/key/.
type KeyOrder struct {
	// Rule is the name of a rule, and Values are the values of its key's parts, in their order, as rule.Rule.NameKey reads them. A
	// null is a value that requests lack.
	Rule   string    `json:"rule"`
	Values []*string `json:"values"`
	// Domain and Entries are a descriptor of a domain, in place of a rule.
	Domain  string     `json:"domain"`
	Entries []KeyEntry `json:"entries"`
	// For is the length of a ban, like 1h.
	For string `json:"for"`
	// Reason is for the log, and for the list of bans.
	Reason string `json:"reason"`
	// DryRun only reads the key.
	DryRun bool `json:"dry_run"`
}

// KeyEntry is an entry of a descriptor.
type KeyEntry struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Key is the answer of the calls under /api/v1/key/: the key as it was before a change.
type Key struct {
	// ID names the key in every instance. It is the id of its ban.
	ID   string `json:"id"`
	Rule string `json:"rule"`
	Key  string `json:"key"`
	Mode string `json:"mode"`
	// Override is the value of the override whose limits apply.
	Override string `json:"override,omitempty"`
	// LimitsFrom says that requests of the rule may state another limit (limits_from). Limits are those of requests that state none.
	LimitsFrom bool       `json:"limits_from,omitempty"`
	Limits     []KeyLimit `json:"limits"`
	InFlight   *KeySlots  `json:"in_flight,omitempty"`
	// Ban is the ban in force: after a ban, the new one. It is null for a key that is not banned.
	Ban *guard.BanEntry `json:"ban"`
	// EarlierBans counts the bans by which the next one is longer, with growth in the ban of the rule.
	EarlierBans int `json:"earlier_bans,omitempty"`
	// Now is the time of the store's clock.
	Now time.Time `json:"now"`
	// Shared says that a change has effect in all instances with the same store. Otherwise it has effect in this instance alone.
	Shared bool `json:"shared"`
	// Ahead says that instances may hold units that they have taken ahead of need. Another instance still spends its own.
	Ahead  bool `json:"ahead,omitempty"`
	DryRun bool `json:"dry_run,omitempty"`
	// Undo is the command that undoes the change; "" without one.
	Undo string `json:"undo,omitempty"`
}

// KeyLimit is what a key has used of one limit, in units.
type KeyLimit struct {
	// Name is the name of the limit in answers to clients. Limit is in the form of the configuration.
	Name      string `json:"name"`
	Limit     string `json:"limit"`
	Algorithm string `json:"algorithm"`
	Used      int64  `json:"used"`
	Remaining int64  `json:"remaining"`
	// NextSeconds is the time until the next unit, and FullSeconds until all units are back. Never says that there will be none.
	NextSeconds float64 `json:"next_seconds"`
	FullSeconds float64 `json:"full_seconds"`
	Never       bool    `json:"never,omitempty"`
}

// KeySlots are the requests in flight of a key.
type KeySlots struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}
