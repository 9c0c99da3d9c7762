package ctl

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/screen"
	"github.com/headgate/headgate/cmd/internal/rules"
)

// Watched says how to print a state repeatedly.
type Watched struct {
	// Every is the interval.
	Every time.Duration
	// Window returns the size of the terminal. It is nil when Out is not a terminal.
	Window func() (rows, columns int)
	// Out receives the state. Errors receives messages about an unreachable instance.
	Out, Errors io.Writer
}

// watch prints a view until ctx ends.
func (c *Instance) watch(ctx context.Context, how *Watched, v view) error {
	w := &watch{ctl: c, out: how.Out, errors: how.Errors, every: how.Every, view: v}
	if !c.JSON {
		w.window = how.Window
	}
	return w.run(ctx)
}

// WatchStatus prints what an instance does now, repeatedly.
func (f *Fleet) WatchStatus(ctx context.Context, how *Watched) error {
	return f.watch(ctx, how, new(statusView))
}

// WatchTop prints the n keys with the most refusals, repeatedly. "" selects all rules.
func (f *Fleet) WatchTop(ctx context.Context, how *Watched, rule string, n int) error {
	page := "/api/v1/top?" + url.Values{"rule": {rule}, "top": {strconv.Itoa(n)}}.Encode()
	return f.watch(ctx, how, &topView{page: page})
}

func (f *Fleet) watch(ctx context.Context, how *Watched, v view) error {
	single, _, err := f.single(ctx)
	switch {
	case err != nil:
		return err
	case single == nil:
		return errWatch
	}
	return single.watch(ctx, how, v)
}

// Bounds of what statusView requests.
const (
	livePage    = "/api/v1/live?limit=40"
	historyPage = "/api/v1/history?"
)

// statusView is what an instance does now, with the refusals of the last seconds.
type statusView struct {
	last    *admin.Live
	history *admin.History // nil without one
}

func (v *statusView) read(ctx context.Context, c *Instance) (text []byte, restarted bool, err error) {
	text, err = c.query(ctx, http.MethodGet, livePage)
	l := new(admin.Live)
	if err == nil {
		err = c.decode(text, l)
	}
	if err != nil {
		return nil, false, err
	}
	restarted = v.last != nil && l.Sequence < v.last.Sequence
	v.last, v.history = l, nil
	if c.JSON || len(l.Rules) == 0 {
		return text, restarted, nil
	}
	query := url.Values{"tier": {"1s"}, "since": {strconv.FormatInt(l.Now.Unix()-screen.SparkSeconds, 10)}}
	for i := range l.Rules {
		query["series"] = append(query["series"], screen.SeriesOf(&l.Rules[i]))
	}
	if past, missing := c.query(ctx, http.MethodGet, historyPage+query.Encode()); missing == nil {
		h := new(admin.History)
		if json.Unmarshal(past, h) == nil {
			v.history = h
		}
	} // admin.history.series may be 0: the table has no pictures then.
	return text, restarted, nil
}

func (v *statusView) lines(rows, columns int) []string {
	return screen.Lines(v.last, v.history, rows, columns)
}

// topView is the most refused keys, below the sentence of the instance.
type topView struct {
	page     string
	sentence string
	last     *admin.Top
}

func (v *topView) read(ctx context.Context, c *Instance) (text []byte, restarted bool, err error) {
	text, err = c.query(ctx, http.MethodGet, v.page)
	t := new(admin.Top)
	if err == nil {
		err = c.decode(text, t)
	}
	if err != nil {
		return nil, false, err
	}
	v.last = t
	if c.JSON {
		return text, false, nil
	}
	var l admin.Live
	live, err := c.query(ctx, http.MethodGet, "/api/v1/live?limit=1")
	if err == nil {
		err = c.decode(live, &l)
	}
	if err != nil {
		return nil, false, err
	}
	v.sentence = l.Sentence
	return text, false, nil
}

func (v *topView) lines(_, columns int) []string {
	var table strings.Builder
	_ = rules.WriteTop(&table, v.last) // A Builder does not fail.
	lines := screen.Wrapped(v.sentence, columns)
	return slices.Concat(lines, []string{""}, strings.Split(strings.TrimRight(table.String(), "\n"), "\n"))
}
