package admin

import "time"

// ReloadStatus is the result of the last reload, in /api/v1/status and /api/v1/reload.
type ReloadStatus struct {
	// Loaded is when the configuration in effect was read.
	Loaded    time.Time `json:"loaded"`
	Succeeded uint64    `json:"succeeded"`
	Failed    uint64    `json:"failed"`
	// Failures are the parts that the last reload could not replace. Their previous version
	// stays in effect.
	Failures []ReloadFailure `json:"failures,omitempty"`
	// Waiting are the settings of the configuration that differ from those at the start, and wait for a restart.
	Waiting []string `json:"waiting_for_restart,omitempty"`
}

// ReloadFailure says why a part was not reloaded.
type ReloadFailure struct {
	// Part is configuration, certificates, upstream certificates, gRPC certificates, HTTP
	// certificates, admin certificates, access log, admin.listen or admin.health.
	Part  string    `json:"part"`
	At    time.Time `json:"at"`
	Error string    `json:"error"`
	// Faults are the faults of a configuration that could be read.
	Faults []ReloadFault `json:"faults,omitempty"`
}

// ReloadFault is the JSON of a config.Fault.
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
