package mode

import (
	"bytes"
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
	"github.com/headgate/headgate/cmd/internal/overlay"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// modesKey names the object of a source with the modes of all instances. One object has all of them, so that each change is one write.
func modesKey() source.Key { return source.Key{Kind: source.Mode, Name: "current"} }

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

// changeAll writes the modes of all instances into the source. Each instance takes them when it follows the change.
func (c *Component) changeAll(w http.ResponseWriter, r *http.Request, asked *admin.ModeChange, to source.Writer) {
	c.instance.Lock()
	made, fault := read(asked, c.instance.Base(), c.set.Now(), c.set.Here(), c.set.Fleet())
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
	done, failure := c.set.SetAll(r.Context(), to, &overlay.Change[override]{
		Record: record,
		Undo: func(former map[string]override) string {
			return overrides(former).undo(asked.Rules, false, c.set.Now())
		},
		Revise: func(former map[string]override, unread error) (map[string]override, error) {
			next := overrides(former).with(asked.Rules, made)
			switch {
			case unread != nil && len(asked.Rules) > 0: // A change of all replaces it.
				return nil, unread
			case len(next) > maxNames:
				return nil, errTooMany
			}
			return next, nil
		},
	})
	if failure != nil {
		calls.Fail(c.host.Log, w, failure)
		return
	}
	calls.WriteJSON(c.host.Log, w, admin.Modes{Modes: overrides(done.Shown).list(), Behind: done.Behind, Undo: done.Undo})
}
