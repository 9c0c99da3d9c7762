package admin

import "github.com/headgate/headgate/internal/config/source"

// Object is a rule, a plan or a customer, as /api/v1/rules, /api/v1/plans and /api/v1/customers show it.
type Object struct {
	// Kind is rule, plan or customer.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Text is the value that a configuration file has for the object, in YAML or JSON.
	Text string `json:"text"`
	// Revision is the object's own. It is 0 if the object can only be read.
	Revision int64 `json:"revision,omitempty"`
	// Origin is file or source.
	Origin string `json:"origin"`
}

// Objects is a page of a list of objects, by name.
type Objects struct {
	Objects []Object `json:"objects"`
	// Next is the name after which the next page begins; "" is the last page.
	Next string `json:"next,omitempty"`
}

// Written is the answer to a change of an object.
type Written struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Revision is the new one. It is 0 after a deletion, and in a dry run.
	Revision int64 `json:"revision"`
	// DryRun says that the change was checked, and not made.
	DryRun bool `json:"dry_run,omitempty"`
	// InForce says that the instance decides by the change. Other instances follow by themselves.
	InForce bool `json:"in_force"`
	// Held says why the instance holds the change back; "" if it does not.
	Held string `json:"held,omitempty"`
	// Before and After are the texts; "" means that there is no object.
	Before string `json:"before"`
	After  string `json:"after"`
}

// Codes of Failure.
const (
	// CodeConflict says that another writer was first. Revision and Present say what there is.
	CodeConflict = "conflict"
	// CodeReadOnly says that the object is in a place that headgate cannot write.
	CodeReadOnly = "read_only"
	CodeNotFound = "not_found"
	// CodeFaults says that the checker refused the change. Faults has the reasons.
	CodeFaults     = "faults"
	CodeBadRequest = "bad_request"
	// CodeUnavailable says that the source or the counting store did not answer. Error says whether a change may have been made.
	CodeUnavailable = "unavailable"
)

// Failure is the answer to a call under /api/v1 for objects, usage and records that could not be answered. Its
// status is 400, 404, 409, 422 or 503.
type Failure struct {
	Code  string `json:"code"`
	Error string `json:"error"`
	// Revision is the present one, and Present is the object; nil if it does not exist.
	Revision int64         `json:"revision,omitempty"`
	Present  *Object       `json:"present,omitempty"`
	Faults   []ReloadFault `json:"faults,omitempty"`
}

// Audit is the answer of /api/v1/audit, with the newest record first.
type Audit struct {
	Records []source.Record `json:"records"`
	// Next is the after of the next page; "" is the last page. A page may be empty and have a next one.
	Next string `json:"next,omitempty"`
}
