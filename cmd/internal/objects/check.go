package objects

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/internal/config/source"
)

const (
	// MaxWrites bounds the attempts of one write. Another writer has to come between the check and the write for each of them.
	MaxWrites = 5
	// Bounds of the wait until this instance has followed a change.
	followPatience = 2 * time.Second
	followPause    = 10 * time.Millisecond
)

// write checks a change, and makes it unless the run is dry. If another instance has written meanwhile, both are repeated: two
// changes that are not valid together never pass both.
func (c *objectCalls) write(ctx context.Context, write *source.Write, t calls.Terms) (*admin.Written, *calls.Failure) {
	answer := &admin.Written{
		Kind: write.Kind.String(), Name: write.Name, DryRun: t.DryRun, Before: write.Record.Before, After: write.Record.After,
	}
	err := source.ErrStale
	for range MaxWrites {
		if failure := c.check(ctx, write); failure != nil {
			return nil, failure
		}
		if t.DryRun {
			return answer, nil
		}
		if answer.Revision, err = c.writer().Write(ctx, *write); !errors.Is(err, source.ErrStale) {
			break
		}
	}
	if err != nil {
		return nil, c.unwritten(ctx, write, err)
	}
	Audit(c.log, &write.Record, nil)
	if !t.Hurried {
		answer.InForce, answer.Held = c.awaitObject(ctx, write, answer.Revision)
	}
	return answer, nil
}

// unwritten is the answer after the error of a write.
func (c *objectCalls) unwritten(ctx context.Context, write *source.Write, err error) *calls.Failure {
	lost, isLost := errors.AsType[*source.ConflictError](err)
	missing, isMissing := errors.AsType[*source.MissingError](err)
	switch {
	case isLost:
		present, _ := c.present(ctx, write.Key) // Without it, the error still has the revision.
		return conflict(lost, present)
	case isMissing:
		fault := admin.ReloadFault{Text: missing.Error()}
		return faulty([]admin.ReloadFault{fault})
	case errors.Is(err, source.ErrStale):
		return calls.Failed(admin.Failure{Code: admin.CodeConflict, Error: err.Error(), Revision: write.Revision}, http.StatusConflict)
	case errors.Is(err, source.ErrUnknownResult):
		Audit(c.log, &write.Record, err)
	}
	return calls.Unavailable(err)
}

func faulty(all []admin.ReloadFault) *calls.Failure {
	return calls.Failed(admin.Failure{
		Code: admin.CodeFaults, Error: "the change has faults, and was not made", Faults: all,
	}, http.StatusUnprocessableEntity)
}

// check checks a write against all writes so far, by this instance and by others, and gives it what the source compares.
func (c *objectCalls) check(ctx context.Context, write *source.Write) *calls.Failure {
	write.View, write.Needs = nil, nil
	if !write.Delete || write.Kind != source.Customer { // No object needs a customer.
		view, err := c.writer().View(ctx)
		if err != nil {
			return calls.Unavailable(err)
		}
		if !c.awaitPosition(ctx, view.Position) {
			return calls.Unavailable(errBehind)
		}
		write.View = &view
	}
	change := source.Change{}
	if write.Delete {
		change.Deleted = []source.Key{write.Key}
	} else {
		change.Objects = []source.Object{{Key: write.Key, Text: write.Text, Revision: write.Revision + 1}}
	}
	all, unknown := c.objects()
	if unknown != nil {
		return unknown
	}
	next, faults := all.check(change)
	if len(faults) > 0 {
		return faulty(faults)
	}
	if !write.Delete {
		write.Needs = next.Needs(write.Key)
		write.View.WithoutCustomers = write.Kind == source.Customer && next.IsApart(all.Objects, write.Name)
	}
	return nil
}

var errBehind = errors.New("this instance has not followed the last change of another one, so the change cannot be checked: " +
	"nothing was changed: try again, and look at headgate ctl status")

// awaitPosition waits until this instance has followed the source up to a position, and reports whether it has.
func (c *Component) awaitPosition(ctx context.Context, position int64) bool {
	return Await(ctx, func() bool { return c.Followed.Position() >= position })
}

// awaitObject waits until a change is in force, so that the next one of the caller is checked against it. Otherwise, held says why
// the change is held back; "" if it was not followed in time. A revision of 0 is a deletion.
func (c *Component) awaitObject(ctx context.Context, write *source.Write, revision int64) (in bool, held string) {
	key := write.Key
	Await(ctx, func() bool {
		all, failure := c.objects()
		if failure != nil {
			return false
		}
		o, found := all.get(key)
		present := int64(0)
		if found {
			present = o.Revision
		}
		if in = ShowsChange(present, write.Revision, revision); in {
			return true
		}
		object, why, isHeld := c.Followed.Held(key)
		if isHeld && (object == nil) == (revision == 0) && (object == nil || object.Revision >= revision) {
			held = why
		}
		return held != ""
	})
	return in, held
}

// ShowsChange reports whether an object shows a change of its revision from read to written, or a later one. A revision of 0 stands for no
// object. After a deletion, another writer may have made the object again: it then has a later revision than the deleted one.
func ShowsChange(present, read, written int64) bool {
	if written == 0 {
		return present == 0 || present > read
	}
	return present >= written
}

// Await waits for a condition for a bounded time, and reports whether it holds.
func Await(ctx context.Context, holds func() bool) bool {
	end, pause := time.NewTimer(followPatience), time.NewTicker(followPause)
	defer end.Stop()
	defer pause.Stop()
	for !holds() {
		select {
		case <-pause.C:
		case <-end.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}
