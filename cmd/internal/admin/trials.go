package admin

import "time"

// Trials is the answer of GET /api/v1/trials.
type Trials struct {
	Now    time.Time `json:"now"`
	Trials []Trial   `json:"trials"`
	// Most is the number of trials that an instance has at once.
	Most int `json:"most"`
}

// TrialOrder is the body of POST /api/v1/trials.
type TrialOrder struct {
	Rule string `json:"rule"`
	// Limits are written like those of the configuration: 25/1s. Burst is that of all of them; 0 is the rule's.
	Limits []string `json:"limits"`
	Burst  int64    `json:"burst,omitempty"`
	// For is how long the trial lasts, from 1s to 24h; "" is 10m.
	For    string `json:"for,omitempty"`
	Reason string `json:"reason,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// Trial is a rule in shadow with the match and the key of another rule, and other limits, for a time.
type Trial struct {
	Name   string    `json:"name"`
	Rule   string    `json:"rule"`
	Limits []string  `json:"limits"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Seconds is the time that the figures are about.
	Seconds float64 `json:"seconds"`
	// Tried counts the decisions of the trial, and Present those of the rule itself in the same time.
	Tried   TrialCounts `json:"tried"`
	Present TrialCounts `json:"present"`
	// LeavesOut lists fields of the rule that the trial does without, and Notes say what the figures do not show.
	LeavesOut []string `json:"leaves_out,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	// Paused says why the trial decides on nothing since a change of the configuration.
	Paused string `json:"paused,omitempty"`
	// DryRun says that the trial was only checked.
	DryRun bool `json:"dry_run,omitempty"`
	// Undo is the command that undoes the action of this answer.
	Undo string `json:"undo,omitempty"`
}

// TrialCounts are the decisions of a rule or a trial.
type TrialCounts struct {
	Limits []string `json:"limits"`
	// Decided counts requests. Refused counts those over the limits, or that would be refused in shadow. Otherwise counts refusals for
	// other reasons, such as bans.
	Decided   uint64 `json:"decided"`
	Refused   uint64 `json:"refused"`
	Otherwise uint64 `json:"refused_otherwise,omitempty"`
	// Part is Refused of Decided, from 0 to 1, and the rates are in a second.
	Part        float64 `json:"refused_part"`
	RefusedRate float64 `json:"refused_per_second"`
	DecidedRate float64 `json:"decided_per_second"`
}
