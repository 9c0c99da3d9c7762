package admin

import "time"

// Refusals is the answer of GET /api/v1/refusals: the last refusals, the newest first.
type Refusals struct {
	Instance string    `json:"instance"`
	Now      time.Time `json:"now"`
	Refusals []Refusal `json:"refusals"`
	// Since is the time of the oldest one that the instance has. Skipped counts those since the start that it did not keep, because there
	// were more than 200 in a second.
	Since   *time.Time `json:"since,omitempty"`
	Skipped uint64     `json:"skipped"`
}

// Refusal is one refused request, or one that a rule in shadow would have refused. Long texts are cut, and end with "...".
type Refusal struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	// RequestID is that of the front, and Decision the number in the header Headgate-Decision.
	RequestID string `json:"request_id,omitempty"`
	Decision  string `json:"decision,omitempty"`
	Method    string `json:"method,omitempty"`
	Path      string `json:"path,omitempty"`
	Host      string `json:"host,omitempty"`
	// Rule is the name of the rule or the stage, and Reason why it refused.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	// Shadow says that the rule only would have refused.
	Shadow bool `json:"shadow,omitempty"`
	// Key is in the form of log.keys, or plain for callers that may administer. It is empty with log.keys off.
	Key          string  `json:"key,omitempty"`
	Remaining    int64   `json:"remaining"`
	RetrySeconds float64 `json:"retry_seconds,omitempty"`
}
