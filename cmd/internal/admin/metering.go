package admin

// MeteringStatus is the state of metering.
type MeteringStatus struct {
	Instance string `json:"instance"`
	Epoch    string `json:"epoch"`
	// Written counts records, and Faults the failed attempts to write them. Bytes are those of the journal now.
	Written uint64 `json:"written"`
	Faults  uint64 `json:"faults"`
	Bytes   int64  `json:"bytes"`
	// Others counts changes that were summed under the others, and Lost those that were not counted.
	Others  uint64           `json:"others"`
	Lost    uint64           `json:"lost"`
	Outputs []MeteringOutput `json:"outputs"`
	// Waiting are the records in memory that the journal does not have. Error is the reason why the journal cannot be written or synced.
	Waiting int64  `json:"waiting"`
	Error   string `json:"error,omitempty"`
}

// MeteringOutput is the state of one output, in records.
type MeteringOutput struct {
	Name          string  `json:"name"`
	Delivered     uint64  `json:"delivered"`
	Pending       uint64  `json:"pending"`
	PendingBytes  int64   `json:"pending_bytes"`
	OldestSeconds float64 `json:"oldest_seconds"`
	Dropped       uint64  `json:"dropped"`
	SetAside      uint64  `json:"set_aside"`
	Failures      uint64  `json:"failures"`
	// Error is the reason of the last failure; it is empty after a delivery.
	Error string `json:"error,omitempty"`
}
