package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config/field"
)

// Reload tells all instances to reload.
func (f *Fleet) Reload(ctx context.Context, out io.Writer) error {
	return f.OnEach(ctx, out, func(c *Instance, out io.Writer) error { return c.Reload(ctx, out) })
}

// SetMode sets or ends modes: in one instance of those that share a source, and in all others.
func (f *Fleet) SetMode(ctx context.Context, out io.Writer, change *admin.ModeChange) error {
	return f.onOneOfSource(ctx, out, change.Here, func(c *Instance, out io.Writer) error { return c.SetMode(ctx, out, change) })
}

// LimitKey sets or ends the limits of a key at run time: in one instance of those that share a source, and in all others.
func (f *Fleet) LimitKey(ctx context.Context, out io.Writer, order *admin.KeyLimitOrder) error {
	return f.onOneOfSource(ctx, out, order.Here, func(c *Instance, out io.Writer) error { return c.LimitKey(ctx, out, order) })
}

// onOneOfSource runs a command in one instance of those that share a source, and in all others. here runs it in all.
func (f *Fleet) onOneOfSource(ctx context.Context, out io.Writer, here bool, do func(*Instance, io.Writer) error) error {
	single, all, err := f.single(ctx)
	switch {
	case err != nil:
		return err
	case single != nil:
		return do(single, out)
	}
	to := all
	var unreached error
	if !here {
		to, unreached = f.spread(ctx, all, modesIn)
	}
	return errors.Join(f.onEach(out, to, do), unreached)
}

// modesIn names the source that keeps the modes of an instance; "" is the instance itself.
func modesIn(s *admin.Status) string {
	if s.Source == nil || s.Source.Kind == "http" {
		return "" // A source of HTTP is only read.
	}
	return s.Source.Kind + " " + s.Source.Place
}

// storeOf names the store that an instance shares; "" is its memory.
func storeOf(s *admin.Status) string {
	var nodes []string
	for i := range s.Store.Nodes {
		nodes = append(nodes, s.Store.Nodes[i].Address)
	}
	slices.Sort(nodes)
	return strings.Join(nodes, " ")
}

// spread selects where a change must be made: in the first of the instances that share a place, and in each that has its own. A note says
// which ones stand for others. The error has those of the instances that do not answer.
func (f *Fleet) spread(ctx context.Context, all []*Instance, place func(*admin.Status) string) ([]*Instance, error) {
	answers, failed := answersOf[admin.Status](ctx, all, statusPage)
	var to []*Instance
	sharing, first := map[string]int{}, map[string]*Instance{}
	for i := range answers {
		if answers[i].Error != "" {
			continue
		}
		shared := place(&answers[i].Answer)
		if sharing[shared]++; shared == "" || first[shared] == nil {
			to = append(to, all[i])
			first[shared] = all[i]
		}
	}
	for shared, one := range first {
		if n := sharing[shared]; shared != "" && n > 1 {
			f.notef("%s makes the change for %s that share %s", one.shown(), field.Counted(n, "instance"), shared)
		}
	}
	return to, failed
}

// Lift ends bans: in one instance of those that share a store, and in all others. The error lists every ban that no instance could lift.
func (f *Fleet) Lift(ctx context.Context, out io.Writer, ids []string, terms Terms) error {
	single, all, err := f.single(ctx)
	switch {
	case err != nil:
		return err
	case single != nil:
		return single.Lift(ctx, out, ids, terms)
	}
	said := "is lifted"
	if terms.DryRun {
		said = "would be lifted (dry run: nothing was changed)"
	}
	to, failed := f.spread(ctx, all, storeOf)
	for _, id := range ids {
		answers, missed := eachInstance(to, func(c *Instance, _ *json.RawMessage) error {
			_, err := c.query(ctx, http.MethodDelete, banPage(id, terms))
			return err
		})
		var by []string
		for i := range answers {
			if answers[i].Error == "" {
				by = append(by, answers[i].Instance)
			}
		}
		if len(by) == 0 {
			failed = errors.Join(failed, missed) // In the memory of some instances, a key may not be banned.
			continue
		}
		if _, err := fmt.Fprintf(out, "%s %s by %s\n", id, said, strings.Join(by, ", ")); err != nil {
			return err
		}
	}
	return failed
}
