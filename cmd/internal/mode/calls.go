package mode

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/cmd/internal/overlay"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// Bounds of a change.
const (
	maxBody   = 64 << 10
	maxNames  = 1000 // also of all overrides together
	maxReason = 1024
	// mostTime bounds --for: a longer mode belongs in the file.
	mostTime = 31 * 24 * time.Hour
)

// file is the mode of a change that ends overrides.
const file = "file"

func (c *Component) list(w http.ResponseWriter, _ *http.Request) {
	calls.WriteJSON(c.host.Log, w, admin.Modes{Modes: c.current().list()})
}

// change sets or ends overrides.
func (c *Component) change(w http.ResponseWriter, r *http.Request) {
	var asked admin.ModeChange
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	body.DisallowUnknownFields()
	if err := body.Decode(&asked); err != nil {
		calls.Fail(c.host.Log, w, calls.BadRequest("the body is not valid ("+err.Error()+`): write {"mode": "shadow", "for": "30m"}`))
		return
	}
	if to := overlay.WriterOf(c.source); to != nil && !asked.Here {
		c.changeAll(w, r, &asked, to)
		return
	}
	c.changeHere(w, r, &asked)
}

var errTooMany = errors.New("there are more than " + strconv.Itoa(maxNames) + " modes of single rules: leave out the names")

// changeHere sets or ends overrides of this instance.
func (c *Component) changeHere(w http.ResponseWriter, r *http.Request, asked *admin.ModeChange) {
	c.instance.Lock()
	defer c.instance.Unlock()
	made, fault := read(asked, c.instance.Base(), c.set.Now(), c.set.Here(), c.set.Fleet())
	if fault != "" {
		calls.Fail(c.host.Log, w, calls.BadRequest(fault))
		return
	}
	if made != nil {
		made.by = access.CallOf(r.Context()).Client().Name()
	}
	former := overrides(c.set.Here())
	next := former.with(asked.Rules, made)
	if len(next) > maxNames {
		calls.Fail(c.host.Log, w, calls.BadRequest(errTooMany.Error()))
		return
	}
	record := objects.Record(r, "mode", asked.Reason)
	record.Action, record.Before, record.After = "mode", former.text(asked.Rules), next.text(asked.Rules)
	switch err := c.set.SetHere(next); {
	case errors.Is(err, component.ErrStopping):
		calls.Fail(c.host.Log, w, calls.Unavailable(err))
	case err != nil:
		calls.Fail(c.host.Log, w, calls.Failed(admin.Failure{
			Code: admin.CodeFaults, Error: "the modes were not changed: " + err.Error(),
		}, http.StatusUnprocessableEntity))
	default:
		undo := former.undo(asked.Rules, c.source != nil && asked.Here, c.set.Now())
		objects.Done(c.host, &record, undo, nil)
		calls.WriteJSON(c.host.Log, w, admin.Modes{Modes: c.current().list(), Undo: undo})
	}
}

// read checks a change. It gives nil for the mode of the file. fault says what is wrong and what to write. set are the overrides so far:
// one of a rule that is deleted can end.
func read(asked *admin.ModeChange, base *config.Config, now time.Time, set ...overrides) (made *override, fault string) {
	if asked.Mode != file {
		set = nil
	}
	if fault := checkNames(asked.Rules, base, set); fault != "" {
		return nil, fault
	}
	invisible := func(c rune) bool { return !unicode.IsPrint(c) }
	if len(asked.Reason) > maxReason || !utf8.ValidString(asked.Reason) || strings.ContainsFunc(asked.Reason, invisible) {
		return nil, "reason must be one line of at most " + strconv.Itoa(maxReason) + " bytes"
	}
	made = &override{since: now, ModeOverride: config.ModeOverride{KeepBans: asked.KeepBans}}
	switch asked.Mode {
	case file:
		if asked.For != nil || asked.Percent != nil || asked.KeepBans {
			return nil, "file ends modes of the run time at once: leave out for, percent and keep_bans"
		}
		return nil, ""
	case guard.Enforce.String():
	case guard.Shadow.String():
		made.Mode = guard.Shadow
		if asked.Percent != nil {
			return nil, "percent is the part of the keys that enforce applies to: write mode enforce, or leave it out"
		}
	default:
		return nil, "mode must be enforce, shadow, or file, which ends modes of the run time"
	}
	if n := asked.Percent; n != nil {
		switch stage := slices.ContainsFunc(asked.Rules, isStage); {
		case *n < 1 || *n > 100:
			return nil, fmt.Sprintf("percent is %d: write a number from 1 to 100, or mode shadow to refuse nothing", *n)
		case *n < 100 && stage:
			return nil, "fair_share and throttle have no keys to take a part of: leave out percent"
		case *n < 100:
			made.Percent = *n
		}
	}
	if asked.For == nil {
		return made, ""
	}
	lasts, err := time.ParseDuration(*asked.For)
	if err != nil || lasts < time.Second || lasts > mostTime {
		return nil, "for must be a time from 1s to 744h, like 30m: leave it out for a mode without an end"
	}
	made.until = now.Add(lasts)
	return made, ""
}

func isStage(name string) bool { return name == guard.FairShareName || name == throttler.Name }

// checkNames finds a name that neither the configuration has nor one of the overrides.
func checkNames(names []string, base *config.Config, set []overrides) (fault string) {
	switch {
	case names != nil && len(names) == 0:
		return "rules is an empty list: name rules in it, or leave rules out to change all"
	case len(names) > maxNames:
		return "there are more than " + strconv.Itoa(maxNames) + " rules: leave the list out to change all"
	}
	known := map[string]bool{guard.FairShareName: base.FairShare != nil, throttler.Name: base.Throttle != nil}
	all := make([]string, 0, len(base.Rules))
	for i := range base.Rules {
		known[base.Rules[i].Name] = true
		all = append(all, base.Rules[i].Name)
	}
	for _, o := range set {
		for name := range o {
			known[name] = known[name] || name != ""
		}
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		const most = 128
		text := "no rule has the name " + strconv.Quote(name[:min(len(name), most)]) + ": "
		if near := rule.Nearest(name, all); near != "" {
			return text + "did you mean " + near + "?"
		}
		return text + "headgate ctl status lists the rules"
	}
	return ""
}
