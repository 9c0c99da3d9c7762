package admin

import "time"

// SourceStatus is the state of a source of rules, plans and customers.
type SourceStatus struct {
	// Kind is etcd, http or postgres, and Place its address without a password.
	Kind  string `json:"kind"`
	Place string `json:"place"`
	// State is followed, cache or unknown: what is in force comes from the source, from its cache, or from the file alone.
	State string `json:"state"`
	// Revision is that of the source or of the cache.
	Revision string `json:"revision"`
	// Changed is when a change last took effect. AgeSeconds is the time since everything that the source had was in force.
	Changed    *time.Time `json:"changed,omitempty"`
	AgeSeconds *float64   `json:"age_seconds,omitempty"`
	Rules      int        `json:"rules"`
	Plans      int        `json:"plans"`
	Customers  int        `json:"customers"`
	// Failure is why the source cannot be read; "" if it can. Failures counts failed reads.
	Failure  string `json:"failure,omitempty"`
	Failures uint64 `json:"failures"`
	// Held are the changes that are held back, at most 100, and HeldCount is their number.
	Held      []HeldStatus `json:"held"`
	HeldCount int          `json:"held_count"`
	Cache     *CacheStatus `json:"cache,omitempty"`
}

// HeldStatus is a change that is held back.
type HeldStatus struct {
	Objects []string  `json:"objects"`
	Since   time.Time `json:"since"`
	// At is the object and the position within its text.
	At      string `json:"at,omitempty"`
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"`
}

// CacheStatus is the state of source.cache.
type CacheStatus struct {
	Path    string     `json:"path"`
	Written *time.Time `json:"written,omitempty"`
	Failure string     `json:"failure,omitempty"`
}
