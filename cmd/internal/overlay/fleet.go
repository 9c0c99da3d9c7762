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

// Revise gives the entries after a change. unread is the error of the present object, which then has no entries here.
type Revise[E Entry] func(former map[string]E, unread error) (map[string]E, error)

// RefusedError is a change that the source cannot keep, or that does not fit the entries so far.
type RefusedError struct{ error }

// Unwrap gives the reason.
func (e *RefusedError) Unwrap() error { return e.error }

// SetAll changes the entries of all instances in the source, writes the record, and waits until this instance follows the change. shown are
// the entries in effect then. behind says that this instance does not have them yet.
func (s *Set[E]) SetAll(ctx context.Context, to source.Writer, change Revise[E], record *source.Record) (
	shown map[string]E, behind bool, f *calls.Failure,
) {
	var next map[string]E
	var follows func() bool
	var err error
	const attempts = 5 // Another operator may be first.
	for range attempts {
		if next, follows, err = s.write(ctx, to, change, record); !errors.As(err, new(*source.ConflictError)) {
			break
		}
	}
	var bad *RefusedError
	switch {
	case errors.As(err, &bad):
		return nil, false, calls.BadRequest(bad.Error())
	case err != nil:
		if errors.Is(err, source.ErrUnknownResult) {
			objects.Audit(s.host.Log, record, err)
		}
		f = calls.Unavailable(err)
		f.Error += ": --here changes this instance alone"
		return nil, false, f
	}
	objects.Audit(s.host.Log, record, nil)
	if objects.Await(ctx, follows) {
		return s.Current(), false, nil
	}
	s.instance.Lock()
	defer s.instance.Unlock()
	return s.Over(s.Here(), next), true, nil
}

// write makes one attempt of a change. follows reports whether this instance has it, or a later one.
func (s *Set[E]) write(ctx context.Context, to source.Writer, change Revise[E], record *source.Record) (
	next map[string]E, follows func() bool, err error,
) {
	present, err := to.Get(ctx, s.Object)
	if err != nil && !errors.Is(err, source.ErrNotFound) {
		return nil, nil, err //nolint:wrapcheck // because the caller says what failed.
	}
	former, unread := s.Decode(present.Text)
	if next, err = change(At(former, s.Now()), unread); err != nil {
		return nil, nil, &RefusedError{err}
	}
	text, err := s.Encode(next)
	if err != nil {
		return nil, nil, &RefusedError{err}
	}
	record.Before, record.After = source.RecordText(present.Text), text
	if text == "" && present.Revision == 0 {
		return next, s.Followed(0, 0), nil
	}
	revision, err := to.Write(ctx, source.Write{
		Key: s.Object, Text: text, Delete: text == "", Revision: present.Revision, Record: *record,
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
