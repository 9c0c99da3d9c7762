package overlay

import (
	"context"
	"errors"

	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/internal/config/source"
)

// Source is what keeps the entries of all instances.
type Source interface {
	// Writer is nil for a source that can only be read. Entries are then those of one instance.
	Writer() source.Writer
}

// Follow takes the entries of the source from a change, after its rules. The caller holds the lock of the configuration.
func (s *Set[E]) Follow(change *source.Change) {
	text, revision, found := "", int64(0), change.All
	for i := range change.Objects {
		if o := &change.Objects[i]; o.Key == s.Object {
			text, revision, found = o.Text, o.Revision, true
		}
	}
	for _, key := range change.Deleted {
		found = found || key == s.Object
	}
	if !found {
		return
	}
	s.revision = revision
	if text == s.text {
		return
	}
	next, err := s.Decode(text)
	if err != nil {
		s.host.Log.Error("changes of the run time in the source are not valid: the former ones stay", "kind", s.Name, "error", err)
		return
	}
	s.text, s.fleet = text, next
	former := s.Current()
	if !s.Renew() {
		return
	}
	s.host.Log.Info("changes of the run time in the source", "kind", s.Name, "before", s.Text(former), "after", s.Text(s.Current()))
}

// Change is a change of the entries of all instances.
type Change[E Entry] struct {
	// Revise gives the entries after the change. unread is the error of the present object, which then has no entries here.
	Revise func(former map[string]E, unread error) (map[string]E, error)
	// Undo gives the command that undoes the change; "" without one.
	Undo func(former map[string]E) string
	// Record begins the record. SetAll adds what the object had before and has after it.
	Record source.Record
}

// Changed is the result of SetAll.
type Changed[E Entry] struct {
	// Shown are the entries in effect. Behind says that this instance does not have the change yet.
	Shown  map[string]E
	Behind bool
	Undo   string
}

// RefusedError is a change that the source cannot keep, or that does not fit the entries so far.
type RefusedError struct{ error }

// Unwrap gives the reason.
func (e *RefusedError) Unwrap() error { return e.error }

// SetAll changes the entries of all instances in the source, with a record, and waits until this instance follows the change.
func (s *Set[E]) SetAll(ctx context.Context, to source.Writer, change *Change[E]) (*Changed[E], *calls.Failure) {
	var next map[string]E
	var follows func() bool
	var err error
	done := new(Changed[E])
	const attempts = 5 // Another operator may be first.
	for range attempts {
		if next, follows, err = s.write(ctx, to, change, done); !errors.As(err, new(*source.ConflictError)) {
			break
		}
	}
	var bad *RefusedError
	switch {
	case errors.As(err, &bad):
		return nil, calls.BadRequest(bad.Error())
	case err != nil:
		if errors.Is(err, source.ErrUnknownResult) {
			objects.Done(s.host, &change.Record, "", err)
		}
		f := calls.Unavailable(err)
		f.Error += ": --here changes this instance alone"
		return nil, f
	}
	objects.Done(s.host, &change.Record, done.Undo, nil)
	done.Behind = !objects.Await(ctx, follows)
	s.instance.Lock()
	defer s.instance.Unlock()
	if done.Shown = s.Current(); done.Behind {
		done.Shown = s.Over(s.Here(), next)
	}
	return done, nil
}

// write makes one attempt of a change. follows reports whether this instance has it, or a later one.
func (s *Set[E]) write(ctx context.Context, to source.Writer, change *Change[E], done *Changed[E]) (
	next map[string]E, follows func() bool, err error,
) {
	present, err := to.Get(ctx, s.Object)
	if err != nil && !errors.Is(err, source.ErrNotFound) {
		return nil, nil, err //nolint:wrapcheck // because the caller says what failed.
	}
	former, unread := s.Decode(present.Text)
	former = At(former, s.Now())
	if next, err = change.Revise(former, unread); err != nil {
		return nil, nil, &RefusedError{err}
	}
	text, err := s.Encode(next)
	if err != nil {
		return nil, nil, &RefusedError{err}
	}
	if done.Undo = ""; unread == nil {
		done.Undo = change.Undo(former)
	}
	change.Record.Before, change.Record.After = source.RecordText(present.Text), text
	if text == "" && present.Revision == 0 {
		return next, s.Followed(0, 0), nil
	}
	revision, err := to.Write(ctx, source.Write{
		Key: s.Object, Text: text, Delete: text == "", Revision: present.Revision, Record: change.Record,
	})
	return next, s.Followed(present.Revision, revision), err //nolint:wrapcheck // because the caller says what failed.
}

// Followed reports whether this instance has followed a change of the object from one revision to another, and has it in effect.
func (s *Set[E]) Followed(read, written int64) func() bool {
	return func() bool {
		s.instance.Lock()
		defer s.instance.Unlock()
		return objects.ShowsChange(s.revision, read, written) && !s.failed.Load()
	}
}

// Follower is a component with entries that a source can keep.
type Follower interface {
	// KeptBy names the source. The wiring calls it once, before the start.
	KeptBy(s Source)
	// Follow takes the entries of the source from a change, after its rules. The caller holds the lock of the configuration.
	Follow(change *source.Change)
}

// WriterOf gives the source that keeps the entries of all instances; nil without one.
func WriterOf(s Source) source.Writer {
	if s == nil {
		return nil
	}
	return s.Writer()
}
