package mode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// modesKey names the object of a source with the modes of all instances. One object has all of them, so that each change is one write.
func modesKey() source.Key { return source.Key{Kind: source.Mode, Name: "current"} }

// Source is what keeps the modes of all instances.
type Source interface {
	// Writer is nil for a source that can only be read. Modes are then those of one instance.
	Writer() source.Writer
}

// document is the text of the object.
type document struct {
	All   *entry           `json:"all,omitempty"`
	Rules map[string]entry `json:"rules,omitempty"`
}

// entry is one mode of a document.
type entry struct {
	Mode     string     `json:"mode"`
	Percent  int        `json:"percent,omitempty"`
	KeepBans bool       `json:"keep_bans,omitempty"`
	Since    time.Time  `json:"since"`
	Until    *time.Time `json:"until,omitempty"`
	By       string     `json:"by,omitempty"`
}

// encode writes overrides as the text of the object; "" for none.
func (o overrides) encode() (string, error) {
	if len(o) == 0 {
		return "", nil
	}
	d := document{Rules: map[string]entry{}}
	for name, one := range o {
		e := entry{Mode: one.Mode.String(), Percent: one.Percent, KeepBans: one.KeepBans, Since: one.since.UTC(), By: one.by}
		if !one.until.IsZero() {
			until := one.until.UTC()
			e.Until = &until
		}
		if name == "" {
			d.All = &e
		} else {
			d.Rules[name] = e
		}
	}
	text, err := json.Marshal(d)
	if err == nil && len(text) > source.MaxText {
		err = fmt.Errorf("the modes take %d bytes, and a source keeps %d: change fewer rules, or all", len(text), source.MaxText)
	}
	return string(text), err
}

// decode reads the text of the object.
func decode(text string) (overrides, error) {
	o := overrides{}
	if text == "" {
		return o, nil
	}
	var d document
	body := json.NewDecoder(bytes.NewReader([]byte(text)))
	body.DisallowUnknownFields()
	if err := body.Decode(&d); err != nil {
		return nil, fmt.Errorf("%s is not valid: %w: set the modes again with headgate ctl mode", modesKey(), err)
	}
	if _, err := body.Token(); !errors.Is(err, io.EOF) || len(d.Rules) > maxNames {
		return nil, fmt.Errorf("%s is not valid: set the modes again with headgate ctl mode", modesKey())
	}
	if d.All != nil {
		if d.Rules == nil {
			d.Rules = map[string]entry{}
		}
		d.Rules[""] = *d.All
	}
	for name, e := range d.Rules {
		one := override{
			ModeOverride: config.ModeOverride{Percent: e.Percent, KeepBans: e.KeepBans}, since: e.Since, by: e.By, everywhere: true,
		}
		if e.Until != nil {
			one.until = *e.Until
		}
		switch {
		case e.Mode == guard.Shadow.String() && e.Percent == 0:
			one.Mode = guard.Shadow
		case e.Mode != guard.Enforce.String() || e.Percent < 0 || e.Percent > 99:
			return nil, fmt.Errorf("%s has the mode %q with percent %d: use shadow, or enforce with 1 to 99", modesKey(), e.Mode, e.Percent)
		}
		o[name] = one
	}
	return o, nil
}

// over gives the overrides of one instance on top of those of all. One for all rules replaces them.
func (o overrides) over(all overrides) overrides {
	next := overrides{}
	if _, replaces := o[""]; !replaces {
		maps.Copy(next, all)
	}
	maps.Copy(next, o)
	return next
}

// Follow takes the modes of the source from a change, after its rules. The caller holds the lock of the configuration.
func (c *Component) Follow(change *source.Change) {
	text, revision, found := "", int64(0), change.All
	for i := range change.Objects {
		if o := &change.Objects[i]; o.Key == modesKey() {
			text, revision, found = o.Text, o.Revision, true
		}
	}
	for _, key := range change.Deleted {
		found = found || key == modesKey()
	}
	if !found {
		return
	}
	c.revision = revision
	if text == c.text {
		return
	}
	next, err := decode(text)
	if err != nil {
		c.host.Log.Error("the modes of the source stay as they were", "error", err)
		return
	}
	c.text, c.fleet = text, next
	former := *c.current.Load()
	if !c.renew() {
		return
	}
	c.host.Log.Info("modes of the source have changed", "before", former.text(nil), "after", c.current.Load().text(nil))
}

// changeAll writes the modes of all instances into the source. Each instance takes them when it follows the change.
func (c *Component) changeAll(w http.ResponseWriter, r *http.Request, asked *admin.ModeChange, to source.Writer) {
	c.instance.Lock()
	made, fault := read(asked, c.instance.Base(), c.now(), c.here, c.fleet)
	c.instance.Unlock()
	if fault != "" {
		calls.Fail(c.host.Log, w, calls.BadRequest(fault))
		return
	}
	if made != nil {
		made.by, made.everywhere = access.CallOf(r.Context()).Client().Name(), true
	}
	record := objects.Record(r, modesKey().String(), asked.Reason)
	record.Action = "mode"
	var next overrides
	var follows func() bool
	var err error
	const attempts = 5 // Another operator may be first.
	for range attempts {
		if next, follows, err = c.write(r.Context(), to, asked.Rules, made, &record); !errors.As(err, new(*source.ConflictError)) {
			break
		}
	}
	var bad *modesError
	switch {
	case errors.As(err, &bad):
		calls.Fail(c.host.Log, w, calls.BadRequest(bad.Error()))
	case err != nil:
		if errors.Is(err, source.ErrUnknownResult) {
			objects.Audit(c.host.Log, &record, err)
		}
		f := calls.Unavailable(err)
		f.Error += ": --here changes this instance alone"
		calls.Fail(c.host.Log, w, f)
	default:
		objects.Audit(c.host.Log, &record, nil)
		behind := !objects.Await(r.Context(), follows)
		shown := *c.current.Load()
		if behind {
			c.instance.Lock()
			shown = c.here.at(c.now()).over(next)
			c.instance.Unlock()
		}
		calls.WriteJSON(c.host.Log, w, admin.Modes{Modes: shown.list(), Behind: behind})
	}
}

// modesError is a change that the source cannot keep.
type modesError struct{ error }

// write makes one attempt of a change. follows reports whether this instance has it, or a later one.
func (c *Component) write(
	ctx context.Context, to source.Writer, names []string, made *override, record *source.Record,
) (next overrides, follows func() bool, err error) {
	present, err := to.Get(ctx, modesKey())
	if err != nil && !errors.Is(err, source.ErrNotFound) {
		return nil, nil, err //nolint:wrapcheck // because the caller says what failed.
	}
	former, err := decode(present.Text)
	if err != nil && len(names) > 0 { // A change of all replaces it.
		return nil, nil, &modesError{err}
	}
	next = former.at(c.now()).with(names, made)
	if len(next) > maxNames {
		return nil, nil, &modesError{errTooMany}
	}
	text, err := next.encode()
	if err != nil {
		return nil, nil, &modesError{err}
	}
	record.Before, record.After = source.RecordText(present.Text), text
	if text == "" && present.Revision == 0 {
		return next, c.followed(0, 0), nil
	}
	revision, err := to.Write(ctx, source.Write{
		Key: modesKey(), Text: text, Delete: text == "", Revision: present.Revision, Record: *record,
	})
	return next, c.followed(present.Revision, revision), err //nolint:wrapcheck // because the caller says what failed.
}

// followed reports whether this instance has followed a change of the object from one revision to another, and has it in effect.
func (c *Component) followed(read, written int64) func() bool {
	return func() bool {
		c.instance.Lock()
		defer c.instance.Unlock()
		return objects.ShowsChange(c.revision, read, written) && !c.failed.Load()
	}
}
