package admin

import "time"

// Usage is the answer of /api/v1/usage.
type Usage struct {
	Customers []CustomerUsage `json:"customers"`
	// Next is the name after which the next page begins; "" is the last page.
	Next string `json:"next,omitempty"`
}

// CustomerUsage is what one customer has used in the present windows, by the counting store.
type CustomerUsage struct {
	Customer string `json:"customer"`
	Plan     string `json:"plan"`
	// Default says that the customer has no entry, and thus the default plan.
	Default bool `json:"default,omitempty"`
	// Raised says that a raise applies now.
	Raised bool         `json:"raised,omitempty"`
	Limits []LimitUsage `json:"limits"`
}

// LimitUsage is what a customer has used of one limit of a quota, in units.
type LimitUsage struct {
	Quota string `json:"quota"`
	// Limit is in the form of the configuration, such as 200/month. Period is its period.
	Limit     string `json:"limit"`
	Period    string `json:"period"`
	Algorithm string `json:"algorithm"`
	Used      int64  `json:"used"`
	Included  int64  `json:"included"`
	// Soft is the number of units above which requests are reported; 0 means none.
	Soft int64 `json:"soft,omitempty"`
	// Hard is the number of units above which requests are refused.
	Hard int64 `json:"hard"`
	// After is what follows the included units: reject, degrade or meter.
	After string `json:"after"`
	// Start and End are those of the present window, by the store's clock. A token bucket has none.
	Start *time.Time `json:"start,omitempty"`
	End   *time.Time `json:"end,omitempty"`
	// Carried says that some of Used can be from before Start: the settings of the calendar have changed, and the
	// count knows no times, so all its units count.
	Carried bool `json:"carried,omitempty"`
}

// Reset is the answer of /api/v1/usage/reset.
type Reset struct {
	Customer string `json:"customer"`
	DryRun   bool   `json:"dry_run,omitempty"`
	// Before is what was used.
	Before []LimitUsage `json:"before"`
	// Ahead is the highest number of units that instances may still hold ahead of need. They stay counted until
	// they are spent or returned. It is 0, because quotas take no units ahead.
	Ahead int64 `json:"ahead"`
}
