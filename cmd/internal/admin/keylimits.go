package admin

import "time"

// KeyLimitOrder is the body of POST /api/v1/key/limit.
type KeyLimitOrder struct {
	Rule string `json:"rule"`
	// Value is a value of the first part of the rule's key, written as in KeyOrder. The limits apply to all keys with the value.
	Value string `json:"value"`
	// Limits are written like those of the configuration: 200/1s. Burst is that of all of them; 0 is the rule's.
	Limits    []string `json:"limits,omitempty"`
	Burst     int64    `json:"burst,omitempty"`
	Unlimited bool     `json:"unlimited,omitempty"`
	// For is how long the limits last, from 1s to 31d.
	For string `json:"for,omitempty"`
	// End ends the limits of the value, in place of new ones.
	End bool `json:"end,omitempty"`
	// Here changes this instance alone, although a source keeps the limits of all instances.
	Here   bool   `json:"here,omitempty"`
	Reason string `json:"reason,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// KeyLimits is the answer of GET /api/v1/key/limits.
type KeyLimits struct {
	Now    time.Time    `json:"now"`
	Limits []KeyLimited `json:"limits"`
}

// KeyLimited are limits that a value has at run time.
type KeyLimited struct {
	Rule string `json:"rule"`
	// Value is "" for callers that may not administer.
	Value  string    `json:"value,omitempty"`
	Limits []string  `json:"limits"` // unlimited is one word
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Everywhere says that the source has them, so that all instances have them.
	Everywhere bool `json:"everywhere,omitempty"`
}

// KeyLimitChange is the answer of POST /api/v1/key/limit.
type KeyLimitChange struct {
	Rule  string `json:"rule"`
	Value string `json:"value"`
	// Before and After are the limits of the value before and after the change.
	Before []string   `json:"before"`
	After  []string   `json:"after"`
	Until  *time.Time `json:"until,omitempty"`
	// Parts is the number of parts of the rule's key: the limits apply to each key with the value.
	Parts int `json:"parts"`
	// Everywhere says that all instances have the change. Behind says that the source has it, and that this instance does not yet.
	Everywhere bool     `json:"everywhere,omitempty"`
	Behind     bool     `json:"behind,omitempty"`
	Notes      []string `json:"notes,omitempty"`
	DryRun     bool     `json:"dry_run,omitempty"`
	Undo       string   `json:"undo,omitempty"`
}
