package admin

import "time"

// ReloadStatus is how the last reload went, for /api/v1/status and /api/v1/reload.
type ReloadStatus struct {
	// Loaded is when the configuration in effect was read.
	Loaded    time.Time `json:"loaded"`
	Succeeded uint64    `json:"succeeded"`
	Failed    uint64    `json:"failed"`
	// Failures are the parts whose last reload failed; the values before stay in effect.
	Failures []ReloadFailure `json:"failures,omitempty"`
}

// ReloadFailure is why a part was not reloaded.
type ReloadFailure struct {
	// Part is configuration, certificates, upstream certificates or access log.
	Part  string    `json:"part"`
	At    time.Time `json:"at"`
	Error string    `json:"error"`
	// Faults are those of a configuration that could be read.
	Faults []ReloadFault `json:"faults,omitempty"`
}

// ReloadFault is one config.Fault.
type ReloadFault struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Field   string `json:"field,omitempty"`
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"`
	// Text is the fault as headgate check prints it.
	Text string `json:"text"`
}
