package ctl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/cmd/internal/fairshare"
	"github.com/headgate/headgate/cmd/internal/rules"
)

// Status prints the status of an instance, or of several a line for each instance, and for each rule and instance.
func (f *Fleet) Status(ctx context.Context, out io.Writer) error {
	return showFleet(ctx, f, statusPage, out, writeStatus, writeStatuses)
}

// Top prints the n keys with the most refusals; "" selects all rules.
func (f *Fleet) Top(ctx context.Context, out io.Writer, rule string, n int) error {
	single, _, err := f.single(ctx)
	if err != nil {
		return err
	}
	query := url.Values{"rule": {rule}, "top": {strconv.Itoa(n)}}
	if single == nil {
		query.Set("top", strconv.Itoa(maxTop)) // The most refused keys of all instances may be further down in each.
		query.Set(admin.Local, "1")            // Otherwise each would count its peers too.
	}
	page := "/api/v1/top?" + query.Encode()
	return showFleet(ctx, f, page, out, rules.WriteTop, func(out io.Writer, answers []admin.From[admin.Top]) error {
		return rules.WriteTopOf(out, answers, n)
	})
}

// maxTop is the number of keys that an instance lists at most.
const maxTop = 1024

// Bans prints the bans.
func (f *Fleet) Bans(ctx context.Context, out io.Writer) error {
	single, _, err := f.single(ctx)
	if err != nil {
		return err
	}
	page := "/api/v1/bans"
	if single == nil {
		page += "?" + admin.Local + "=1"
	}
	return showFleet(ctx, f, page, out, rules.WriteBans, rules.WriteBansOf)
}

// Shares prints the shares. A fleet is not watched.
func (f *Fleet) Shares(ctx context.Context, s *Shares) error {
	single, _, err := f.single(ctx)
	switch {
	case err != nil:
		return err
	case single != nil:
		return single.Shares(ctx, s)
	case s.Every > 0:
		return errWatch
	}
	return showFleet(ctx, f, sharesPage, s.Out, nil, func(out io.Writer, answers []admin.From[admin.Shares]) error {
		return fairshare.WriteOf(out, answers, fairshare.Shape{Order: s.Sort, Top: s.Top})
	})
}

// errWatch is the error of a command that watches one instance.
var errWatch = ConfigError{errors.New("ctl: --watch shows one instance: name one with --admin, or leave --watch out")}

// Throttle prints the load of the throttle.
func (f *Fleet) Throttle(ctx context.Context, every time.Duration, out io.Writer) error {
	single, all, err := f.single(ctx)
	switch {
	case err != nil:
		return err
	case single != nil:
		return single.Throttle(ctx, every, out)
	case every > 0:
		return errWatch
	}
	return f.onEach(out, all, func(c *Instance, out io.Writer) error { return c.Throttle(ctx, 0, out) })
}

// Leases prints the resources of capacity leases.
func (f *Fleet) Leases(ctx context.Context, out io.Writer, resource string) error {
	return f.OnEach(ctx, out, func(c *Instance, out io.Writer) error { return c.Leases(ctx, out, resource) })
}

// Modes prints the modes that were set at run time.
func (f *Fleet) Modes(ctx context.Context, out io.Writer) error {
	return f.OnEach(ctx, out, func(c *Instance, out io.Writer) error { return c.Modes(ctx, out) })
}

// OnEach runs a command on each instance of a list, at the same time, and prints its output under the name of the instance. For one
// instance, it prints the output alone. do writes to its own writer.
func (f *Fleet) OnEach(ctx context.Context, out io.Writer, do func(*Instance, io.Writer) error) error {
	single, all, err := f.single(ctx)
	switch {
	case err != nil:
		return err
	case single != nil:
		return do(single, out)
	}
	return f.onEach(out, all, do)
}

// onEach runs a command on each instance, and prints its output under the name of the instance.
func (f *Fleet) onEach(out io.Writer, all []*Instance, do func(*Instance, io.Writer) error) error {
	answers, failed := eachInstance(all, func(c *Instance, into *json.RawMessage) error {
		var text bytes.Buffer
		err := do(c, &text)
		*into = text.Bytes()
		return err
	})
	if f.JSON {
		for i := range answers {
			if !json.Valid(answers[i].Answer) {
				answers[i].Answer = nil
			}
		}
		return errors.Join(writeList(out, answers), failed)
	}
	for i := range answers {
		a := &answers[i]
		if len(a.Answer) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s (%s):\n%s", terminal.Printable(a.Instance), a.Address, a.Answer); err != nil {
			return err
		}
	}
	return failed
}

// writeStatuses prints what differs between instances, and the counts of each rule in each of them.
func writeStatuses(out io.Writer, answers []admin.From[admin.Status]) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "INSTANCE\tADDRESS\tVERSION\tSTATE\tUP\tIN FLIGHT\tSTORE\tCONFIGURATION OF\tNOTES\n")
	for i := range answers {
		s := &answers[i].Answer
		terminal.Rowf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", answers[i].Instance, answers[i].Address, s.Version, s.State,
			time.Duration(s.UptimeSeconds)*time.Second, s.Requests.InFlight, s.Store.Kind, s.Reload.Loaded.Local().Format(time.DateTime),
			cmp.Or(strings.Join(notesOf(s), ", "), "-"))
	}
	terminal.Rowf(w, "\nRULE\tINSTANCE\tMODE\tLIMITS\tALLOWED\tWAITED\tREFUSED\tREASONS\n")
	for _, name := range ruleNames(answers) {
		for i := range answers {
			at := slices.IndexFunc(answers[i].Answer.Rules, func(r admin.RuleStatus) bool { return r.Name == name })
			if at < 0 {
				terminal.Rowf(w, "%s\t%s\tnot there\n", name, answers[i].Instance)
				continue
			}
			r := &answers[i].Answer.Rules[at]
			terminal.Rowf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", name, answers[i].Instance, r.Mode, strings.Join(r.Limits, ", "),
				r.Allowed, r.Waited, r.Refused, terminal.ListCounts(r.Reasons))
		}
	}
	return w.Flush()
}

// notesOf says what needs attention in an instance.
func notesOf(s *admin.Status) (notes []string) {
	for i := range s.Reload.Failures {
		notes = append(notes, s.Reload.Failures[i].Part+" NOT RELOADED")
	}
	if len(s.Reload.Waiting) > 0 {
		notes = append(notes, "settings wait for a restart")
	}
	if s.Store.Away {
		notes = append(notes, "store UNREACHABLE")
	}
	if s.Source != nil && s.Source.Failure != "" {
		notes = append(notes, "source UNREACHABLE")
	}
	return notes
}

// ruleNames lists the rules of all instances in the order of the first that has each.
func ruleNames(answers []admin.From[admin.Status]) (names []string) {
	seen := map[string]bool{}
	for i := range answers {
		for n := range answers[i].Answer.Rules {
			if name := answers[i].Answer.Rules[n].Name; !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}
