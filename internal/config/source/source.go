// Package source has the contract of a source: a place outside the configuration file that keeps rules, plans and
// customers, one object each, in the words of the file. The packages cmd/internal/source/etcd, cmd/internal/source/http and
// cmd/internal/source/postgres have sources. Package config checks the objects.
package source

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Bounds of every source. A source that has more refuses its changes with an error that says so.
const (
	// MaxObjects bounds the objects of one source.
	MaxObjects = 200_000
	// MaxText bounds the text of one object, in bytes.
	MaxText = 64 << 10
	// MaxTotal bounds the texts of all objects of one source, in bytes.
	MaxTotal = 256 << 20
	// MaxName bounds the name of an object, in bytes.
	MaxName = 256
)

// Kind is what an object is.
type Kind uint8

// The kinds. Their numbers do not change, because caches keep them.
const (
	Rule     Kind = 1
	Plan     Kind = 2
	Customer Kind = 3
	// Mode is the kind of the modes that operators set at run time. They are no part of a configuration, and of no cache.
	Mode Kind = 4
)

// Kinds are the kinds of a configuration, in the order in which it reads them.
func Kinds() []Kind { return []Kind{Rule, Plan, Customer} }

// AllKinds are the kinds that a source which can be written keeps.
func AllKinds() []Kind { return append(Kinds(), Mode) }

// String gives the word of the kind in the singular.
func (k Kind) String() string {
	switch k {
	case Rule:
		return "rule"
	case Plan:
		return "plan"
	case Customer:
		return "customer"
	case Mode:
		return "mode"
	}
	return "unknown"
}

// Section gives the name of the section of the file that has such objects. Keys of sources have it too.
func (k Kind) Section() string { return k.String() + "s" }

// Key names an object. A rule and a plan may have one name.
type Key struct {
	Kind Kind
	Name string
}

// String gives the key for people, like customers/acme. A name that is not printable, which no object may have, is quoted.
func (k Key) String() string {
	if !printable(k.Name) {
		return k.Kind.Section() + "/" + strconv.Quote(k.Name)
	}
	return k.Kind.Section() + "/" + k.Name
}

// Object is one object as a source has it.
type Object struct {
	Key

	// Text is the value that the file would have for the object, in YAML or JSON. That of a rule may leave its
	// name out. A source gives the first MaxText+1 bytes of a longer text, and the receiver refuses the object.
	Text string
	// Revision is the object's own: it grows with each write of the object. It is at least 1. A read-only
	// source has 0.
	Revision int64
}

// Change is a change of a source that takes effect as a whole, such as a transaction.
type Change struct {
	// All says that Objects are all objects of the source, as after the start or a gap. Then Deleted is empty.
	All bool
	// Objects are new or changed; Deleted are gone. No key is twice in a change.
	Objects []Object
	Deleted []Key
	// Revision is that of the source after the change, for people: it is equal for equal contents.
	Revision string
	// Position grows with the changes of a source that can be written: see View. It is smaller after the source has
	// lost its data. A change without objects only gives a new position.
	Position int64
}

// Receiver takes what a source has. A source calls it from one goroutine at a time.
type Receiver interface {
	// Changed takes a change. The receiver keeps the slices. The calls are in the order of the changes, and the
	// first change of each Follow has All. Objects with faults are the receiver's concern: the source goes on.
	Changed(Change)
	// Reached says that everything that the source had at a time was given to Changed.
	Reached(at time.Time)
	// Failed says that the source cannot be read at the moment, and why. The source tries again by itself.
	Failed(error)
}

// Source follows the objects of one place.
type Source interface {
	// Follow gives the receiver all objects, and then each change, until ctx ends. It tries again after
	// failures, with jittered pauses of at most a few seconds. It returns only when ctx has ended, after its
	// last call of the receiver.
	Follow(ctx context.Context, to Receiver)
	// Close ends the connections. It is called once, after Follow has returned.
	Close() error
}

// Write is one change of one object.
type Write struct {
	Key

	// Text is the new text. Delete removes the object in place of that.
	Text   string
	Delete bool
	// Revision is the object's revision that the writer has read; 0 says that there is no such object.
	Revision int64
	// View is what the change was checked against. With it, the write fails with ErrStale if another write was
	// made since. nil means no such check.
	View *View
	// Needs are objects that must exist when the change is made, such as the plan of a customer. At most MaxNeeds.
	Needs []Key
	// Record is written in the same transaction.
	Record Record
}

// MaxNeeds bounds Write.Needs.
const MaxNeeds = 16

// View says which writes through a Writer there were at a time. Changes by other programs, such as etcdctl or psql, do
// not count.
type View struct {
	// Position is that of a Change: a receiver has seen these writes when it has got a change with at least this position.
	Position int64
	// RulesAndPlans and Customers name the last write of these kinds. Only the Writer knows their meaning.
	RulesAndPlans, Customers int64
	// WithoutCustomers says that the change is valid whatever other customers there are: writes of customers are not
	// compared, so that many customers can be written at once. The caller sets it.
	WithoutCustomers bool
}

// Record says who changed what, and why.
type Record struct {
	Time    time.Time `json:"time"`
	Caller  string    `json:"caller,omitempty"` // its name in server.callers
	Address string    `json:"address,omitempty"`
	Action  string    `json:"action"` // like set, delete, plan, reset
	Object  string    `json:"object"` // a Key in its text
	Before  string    `json:"before,omitempty"`
	After   string    `json:"after,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// Writer is a Source that can be written. Its methods are safe for concurrent use. They end with ctx.
type Writer interface {
	Source
	// Get reads one object as it is now. The error is ErrNotFound if there is none.
	Get(ctx context.Context, key Key) (Object, error)
	// Write changes an object and adds the record, in one transaction, if the object still has the revision. It
	// gives the object's new revision; 0 after a deletion. The error is a *ConflictError if another writer was first,
	// ErrStale if the View is no longer the present one, and a *MissingError if an object of Needs does not exist. After
	// ErrUnknownResult, the change may have been made. After any other error, nothing was changed.
	Write(ctx context.Context, w Write) (revision int64, err error)
	// View says which writes there were.
	View(ctx context.Context) (View, error)
	// Records gives records, the newest first.
	Records(ctx context.Context, q RecordQuery) (RecordPage, error)
}

// RecordQuery selects records.
type RecordQuery struct {
	// Object is empty, or the Key of an object in its text.
	Object string
	// Number bounds the records of the page. RecordPageBytes bounds their texts.
	Number int
	// After continues after a page: it is that page's Next. "" begins with the newest record.
	After string
}

// RecordPage is the answer to a RecordQuery.
type RecordPage struct {
	Records []Record
	// Next is for the next page; "" after the last one. A page may be empty and have a next one.
	Next string
}

// Bounds of the records of a writer: older ones are removed.
const (
	// MaxRecords bounds their number, and RecordAge their age.
	MaxRecords = 10_000
	RecordAge  = 400 * 24 * time.Hour
	// MaxRecordBytes bounds the texts of all records together, and RecordPageBytes those of a page. A page has at
	// least one record, whatever its size.
	MaxRecordBytes  = 64 << 20
	RecordPageBytes = 1 << 20
)

// ErrStale says that another write was made since the View of a Write. Nothing was written.
var ErrStale = errors.New("source: other rules, plans or customers were written meanwhile: read them again and repeat the change")

// ErrUnknownResult says that the connection ended before the answer.
var ErrUnknownResult = errors.New("the change may have been made: read the object to know")

// ErrBadCursor says that RecordQuery.After is not the Next of a page.
var ErrBadCursor = errors.New("source: the place of the next records is not valid: use the one of the page before")

// MissingError says that an object of Write.Needs does not exist. Nothing was written.
type MissingError struct{ Key Key }

// Error gives the problem and the fix in one sentence.
func (e *MissingError) Error() string {
	return fmt.Sprintf("source: %s is not in the source, and the change needs it: write it first", e.Key)
}

// ErrNotFound says that an object does not exist.
var ErrNotFound = errors.New("source: there is no such object")

// ConflictError says that another writer changed an object first. Nothing was written.
type ConflictError struct {
	Key Key
	// Revision is what the object has now; 0 if it does not exist. Expected is what the writer had read.
	Revision, Expected int64
}

// Error gives the problem and the fix in one sentence.
func (e *ConflictError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("source: %s was deleted after it was read at revision %d: read it again and repeat the change",
			e.Key, e.Expected)
	}
	if e.Expected == 0 {
		return fmt.Sprintf("source: %s exists already, with revision %d: read it and change that", e.Key, e.Revision)
	}
	return fmt.Sprintf("source: %s has revision %d, and the change was made for revision %d: read it again and repeat the change",
		e.Key, e.Revision, e.Expected)
}
