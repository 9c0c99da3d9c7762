package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/internal/config/source"
)

// put replaces an object by the text in the body.
func (c *objectCalls) put(w http.ResponseWriter, r *http.Request) {
	c.change(w, r, func(_, body string) (string, string, error) { return body, "set", nil })
}

// patch changes fields of an object: those of the body replace those of the object, and null removes one.
func (c *objectCalls) patch(w http.ResponseWriter, r *http.Request) {
	c.change(w, r, func(before, body string) (string, string, error) {
		text, fields, err := mergeText(before, body)
		action := "set"
		if c.kind == source.Customer && len(fields) == 1 && fields[0] == "plan" {
			action = "plan"
		}
		return text, action, err
	})
}

// remove deletes an object.
func (c *objectCalls) remove(w http.ResponseWriter, r *http.Request) { c.change(w, r, nil) }

// edit gives the new text of an object, and the action for the record.
type edit func(before, body string) (text, action string, err error)

// change changes an object, if it still has the revision that the caller has read. A nil edit deletes it.
func (c *objectCalls) change(w http.ResponseWriter, r *http.Request, by edit) {
	written, failure := c.changed(r, by)
	if failure != nil {
		calls.Fail(c.log, w, failure)
		return
	}
	calls.WriteJSON(c.log, w, written)
}

func (c *objectCalls) changed(r *http.Request, by edit) (*admin.Written, *calls.Failure) {
	key, failure := c.key(r)
	if failure != nil {
		return nil, failure
	}
	t, failure := calls.TermsOf(r, true)
	if failure != nil {
		return nil, failure
	}
	body, failure := bodyOf(r)
	if failure != nil {
		return nil, failure
	}
	present, failure := c.present(r.Context(), key)
	if failure != nil {
		return nil, failure
	}
	if failure := c.writable(key, present); failure != nil {
		return nil, failure
	}
	write := source.Write{Key: key, Revision: t.Revision, Record: Record(r, key.String(), t.Reason)}
	if failure := edited(&write, present, body, by); failure != nil {
		return nil, failure
	}
	return c.write(r.Context(), &write, t)
}

// present gives the object as the source has it now, so that a caller does not wait for this instance to follow the
// source. It is nil if there is none. An object of the file, or of a source that can only be read, is as it is in force.
func (c *objectCalls) present(ctx context.Context, key source.Key) (*admin.Object, *calls.Failure) {
	if writer := c.writer(); writer != nil {
		object, err := writer.Get(ctx, key)
		if err == nil {
			return &admin.Object{
				Kind: key.Kind.String(), Name: key.Name, Text: object.Text, Revision: object.Revision, Origin: originSource,
			}, nil
		}
		if !errors.Is(err, source.ErrNotFound) {
			return nil, calls.Unavailable(err)
		}
	}
	all, failure := c.objects()
	if failure != nil {
		return nil, failure
	}
	object, found := all.get(key)
	if !found || object.Origin == originSource && c.writer() != nil { // It was deleted just now.
		return nil, nil
	}
	return &object, nil
}

// writable refuses objects that only other programs can change.
func (c *objectCalls) writable(key source.Key, present *admin.Object) *calls.Failure {
	var text string
	switch {
	case present != nil && present.Origin == originFile:
		text = fmt.Sprintf("%s is in the configuration file, which headgate only reads: change the file, or move the object to a source",
			key)
	case c.writer() == nil:
		text = c.readOnly()
	default:
		return nil
	}
	return calls.Failed(admin.Failure{Code: admin.CodeReadOnly, Error: text, Present: present}, http.StatusConflict)
}

// edited gives a write its text.
func edited(write *source.Write, present *admin.Object, body string, by edit) *calls.Failure {
	before := ""
	if present != nil {
		before = present.Text
	}
	if has := revisionOf(present); has != write.Revision {
		return conflict(&source.ConflictError{Key: write.Key, Revision: has, Expected: write.Revision}, present)
	}
	write.Record.Before = source.RecordText(before)
	if by == nil {
		write.Delete, write.Record.Action = true, "delete"
		if present == nil {
			return notFound(write.Key)
		}
		return nil
	}
	var err error
	if write.Text, write.Record.Action, err = by(before, body); err != nil {
		return calls.BadRequest(err.Error())
	}
	if write.Text == "" || len(write.Text) > source.MaxText {
		return calls.BadRequest("the new object is empty, or longer than " + strconv.Itoa(source.MaxText) + " bytes: write its fields in " +
			"the body, in YAML or JSON")
	}
	write.Record.After = write.Text
	return nil
}

func revisionOf(o *admin.Object) int64 {
	if o == nil {
		return 0
	}
	return o.Revision
}

func conflict(err *source.ConflictError, present *admin.Object) *calls.Failure {
	return calls.Failed(admin.Failure{
		Code: admin.CodeConflict, Error: err.Error(), Revision: err.Revision, Present: present,
	}, http.StatusConflict)
}

// bodyOf reads the body of a change.
func bodyOf(r *http.Request) (string, *calls.Failure) {
	text, err := io.ReadAll(io.LimitReader(r.Body, source.MaxText+1))
	if _, long := errors.AsType[*http.MaxBytesError](err); long || len(text) > source.MaxText {
		return "", calls.BadRequest("the body is longer than " + strconv.Itoa(source.MaxText) + " bytes")
	}
	if err != nil {
		return "", calls.BadRequest("the body did not arrive")
	}
	if !utf8.Valid(text) {
		return "", calls.BadRequest("the body is not UTF-8")
	}
	return string(text), nil
}
