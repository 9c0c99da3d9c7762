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
	// Last are the last reloads and changes of the source, the newest first: at most 20.
	Last []ConfigChange `json:"last,omitempty"`
}

// ConfigChange is a reload, or a change of the source.
type ConfigChange struct {
	At time.Time `json:"at"`
	// By says what caused it: file NAME, signal, operator NAME or ADDRESS, source PLACE.
	By string `json:"by"`
	// Error says why the former configuration stays in effect.
	Error string `json:"error,omitempty"`
	// Changed is the number of rules, plans, customers and settings that differ from the configuration before. Names are the first
	// 10 of them, like rules/search and proxy.upstream.
	Changed int      `json:"changed"`
	Names   []string `json:"names,omitempty"`
	// Waiting are the first 10 settings that waited for a restart afterwards.
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
