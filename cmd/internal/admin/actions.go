package admin

import "time"

// Actions is the answer of GET /api/v1/actions: what operators have changed at run time in this instance, the newest first.
type Actions struct {
	Now     time.Time `json:"now"`
	Actions []Action  `json:"actions"`
}

// Action is a change of the run time by an operator.
type Action struct {
	Time time.Time `json:"time"`
	// Action is mode, trial, trial stop, key limit, key limit end, reset, ban, unban, lift, or reload.
	Action string `json:"action"`
	// Object is what has changed: modes/current, trials/NAME, keys/RULE KEY with the key in the form of log.keys.
	Object string `json:"object"`
	// Caller has the name of server.callers; "" without admin.auth.
	Caller  string `json:"caller,omitempty"`
	Address string `json:"address,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	// Error says why the result is not known. The change may have been made.
	Error string `json:"error,omitempty"`
	// Undo is the command that undoes the action; "" without one.
	Undo string `json:"undo,omitempty"`
}
