package admin

import (
	"encoding/json"
	"time"
)

// Modes is the answer of /api/v1/mode: the modes that were set at run time.
type Modes struct {
	Modes []ModeOverride `json:"modes"`
	// Behind says that the source has the change, and that this instance does not have it yet.
	Behind bool `json:"behind,omitempty"`
	// Undo is the command that undoes the change of this answer.
	Undo string `json:"undo,omitempty"`
}

// ModeOverride is a mode that was set at run time.
type ModeOverride struct {
	// Rule is the name of a rule, fair_share, or throttle. "" means all of them and the domains, but for those with an override of their
	// own.
	Rule string `json:"rule,omitempty"`
	Mode string `json:"mode"` // enforce or shadow
	// Percent is the part of the keys that enforce applies to; 0 means all.
	Percent  int  `json:"percent,omitempty"`
	KeepBans bool `json:"keep_bans,omitempty"`
	// Since is when it was set, by the caller By. It ends at Until, or with the process.
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until,omitempty"`
	By    string     `json:"by,omitempty"`
	// Everywhere says that the source has it, so that all instances have it. It does not end with the process.
	Everywhere bool `json:"everywhere,omitempty"`
}

// ModeChange is the body of POST /api/v1/mode.
type ModeChange struct {
	// Mode is enforce, shadow, or file, which ends overrides.
	Mode string `json:"mode"`
	// Rules are the names of rules, fair_share and throttle. Without the field, the change is for all, and ends all overrides of single
	// rules. An empty list or null is an error: a caller whose list has become empty does not mean all.
	Rules ModeRules `json:"rules,omitempty"`
	// For is how long the override lasts, like 30m; nil means until it is changed.
	For *string `json:"for,omitempty"`
	// Percent is 1 to 100; nil means all keys.
	Percent  *int   `json:"percent,omitempty"`
	KeepBans bool   `json:"keep_bans,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Here changes this instance alone, although a source keeps the modes of all. Its modes come before those of all instances.
	Here bool `json:"here,omitempty"`
}

// ModeRules are names. It is nil only for a document without the field.
type ModeRules []string

// UnmarshalJSON reads null as an empty list.
func (r *ModeRules) UnmarshalJSON(text []byte) error {
	var names []string
	err := json.Unmarshal(text, &names)
	*r = append(ModeRules{}, names...)
	return err //nolint:wrapcheck // because it is a fault of the text.
}
