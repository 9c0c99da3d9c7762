package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/rule"
)

// Bounds of the answers about usage.
const (
	maxUsagePage = 500
	// usageTimeout bounds the calls of the store for one answer.
	usageTimeout = 5 * time.Second
)

// listUsage answers with what one customer has used, or with a page of all customers that have an entry. The store has
// no list of the others.
func (a *adminServers) listUsage(w http.ResponseWriter, r *http.Request) {
	span, failure := spanOf(r)
	if failure != nil {
		a.fail(w, failure)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), usageTimeout)
	defer cancel()
	query := r.URL.Query()
	var names []string
	answer := admin.Usage{Customers: []admin.CustomerUsage{}}
	if query.Has("customer") {
		names = []string{query.Get("customer")}
	} else if names, answer.Next, failure = a.pageOfCustomers(r); failure != nil {
		a.fail(w, failure)
		return
	}
	all, failure := a.usageOf(ctx, names)
	if failure != nil {
		a.fail(w, failure)
		return
	}
	if failure := a.judge(span, query.Has("customer"), all); failure != nil {
		a.fail(w, failure)
		return
	}
	for i := range all {
		all[i].Limits = span.chosen(all[i].Limits)
		answer.Customers = append(answer.Customers, all[i])
	}
	writeJSON(a.instance.options.Log, w, answer)
}

// judge refuses a time that the store does not have. For the list, the windows of all limits decide, so that each page gives
// the same answer.
func (a *adminServers) judge(s *span, one bool, all []admin.CustomerUsage) *failure {
	if !s.bounded() {
		return nil
	}
	if !one {
		if first, last, found := a.instance.rules.guard.PresentWindows(); found {
			s.seen(first.Time(), last.Time())
		}
		return s.answered()
	}
	for i := range all {
		for j := range all[i].Limits {
			if l := &all[i].Limits[j]; l.Start != nil {
				s.seen(*l.Start, *l.End)
			}
		}
	}
	return s.answered()
}

// pageOfCustomers gives the names of a page.
func (a *adminServers) pageOfCustomers(r *http.Request) (names []string, next string, f *failure) {
	n, f := pageSize(r.URL.Query().Get("limit"), defaultPage, maxUsagePage)
	if f != nil {
		return nil, "", f
	}
	in, f := a.instance.objects()
	if f != nil {
		return nil, "", f
	}
	all := in.list(source.Customer, r.URL.Query().Get("after"), n+1)
	for i := range all {
		if i == n {
			return names, all[i-1].Name, nil
		}
		names = append(names, all[i].Name)
	}
	return names, "", nil
}

// usageOf reads what customers have used.
func (a *adminServers) usageOf(ctx context.Context, names []string) ([]admin.CustomerUsage, *failure) {
	g := a.instance.rules.guard
	used, err := g.UsageOfMany(ctx, names)
	if err != nil {
		return nil, failureOfUsage(err, false)
	}
	all := make([]admin.CustomerUsage, len(names))
	for i, name := range names {
		plan, entry, raised := g.PlanOf(name)
		all[i] = admin.CustomerUsage{Customer: name, Plan: plan, Default: !entry, Raised: raised, Limits: limitUsage(used[i])}
	}
	return all, nil
}

func failureOfUsage(err error, written bool) *failure {
	unknown, value := new(guard.UnknownQuotaError), new(rule.OverrideError)
	if errors.As(err, &unknown) {
		return &failure{admin.Failure{Code: admin.CodeNotFound, Error: err.Error()}, http.StatusNotFound}
	}
	if errors.As(err, &value) {
		return badRequest("the name of the customer: " + value.Problem + ": " + value.Fix)
	}
	f := unavailable(err)
	if edge := new(headgate.EdgeError); written && errors.As(err, &edge) {
		f.Error = "a window ended during the reset, so units of other limits may have been given back: repeat the reset"
	} else if written {
		f.Error += ": some units may have been given back: look at the usage"
	}
	return f
}

func limitUsage(used []guard.QuotaUse) []admin.LimitUsage {
	all := make([]admin.LimitUsage, len(used))
	for i := range used {
		u := &used[i]
		all[i] = admin.LimitUsage{
			Quota: u.Quota, Limit: u.Limit.String(), Period: u.Limit.Period(), Algorithm: u.Algorithm.String(), Used: u.Used,
			Included: u.Limit.Count, Hard: u.Hard, After: u.After.String(), Carried: u.Carried,
		}
		if u.Soft > 0 {
			const whole = 100
			all[i].Soft = u.Limit.Count / whole * int64(u.Soft)
			all[i].Soft += u.Limit.Count % whole * int64(u.Soft) / whole
		}
		if u.End != 0 {
			start, end := u.Start.Time(), u.End.Time()
			all[i].Start, all[i].End = &start, &end
		}
	}
	return all
}

// reset gives back the used units of a customer. ?quota= and ?period= select limits.
func (a *adminServers) reset(w http.ResponseWriter, r *http.Request) {
	t, failure := termsOf(r, false)
	query := r.URL.Query()
	name, quota, period := query.Get("customer"), query.Get("quota"), query.Get("period")
	if failure == nil && (name == "" || len(name) > source.MaxName) {
		failure = badRequest("customer is missing or too long: write ?customer=NAME")
	}
	if failure != nil {
		a.fail(w, failure)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), usageTimeout)
	defer cancel()
	g, record := a.instance.rules.guard, a.record(r, source.Key{Kind: source.Customer, Name: name}.String(), t.reason)
	do := g.ResetUsage
	if t.dryRun {
		do = g.UsageOf
	}
	before, err := do(ctx, name, quota, period)
	record.Action, record.Before, record.After = "reset", usedText(before), "0 units"
	if failure := failureOfReset(err); failure != nil {
		if failure.Code == admin.CodeUnavailable && !t.dryRun {
			record.After = "not known"
			if len(before) == 0 { // The counters could not be read, so nothing was given back.
				record.Before, record.After = "not known", "unchanged"
			}
			a.instance.audit(&record, err)
		}
		a.fail(w, failure)
		return
	}
	if !t.dryRun {
		a.instance.audit(&record, nil)
	}
	writeJSON(a.instance.options.Log, w, admin.Reset{Customer: name, DryRun: t.dryRun, Before: limitUsage(before)})
}

func failureOfReset(err error) *failure {
	if err == nil {
		return nil
	}
	return failureOfUsage(err, true)
}

// usedText says in a record what was used.
func usedText(used []guard.QuotaUse) string {
	all := make([]string, len(used))
	for i := range used {
		all[i] = fmt.Sprintf("%s %s: %s", used[i].Quota, used[i].Limit.Period(), field.Counted(used[i].Used, "unit"))
	}
	return strings.Join(all, ", ")
}

// span is the time that a caller asks about. The zero times mean no bound.
type span struct {
	from, to time.Time
	// first and last are the edges of all windows that were seen.
	first, last time.Time
	found       bool
}

// spanOf reads ?from= and ?to=: dates, or times of RFC 3339. to includes its day.
func spanOf(r *http.Request) (s *span, f *failure) {
	s = new(span)
	var err error
	if text := r.URL.Query().Get("from"); text != "" {
		if s.from, err = time.Parse(time.DateOnly, text); err != nil {
			s.from, err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			return nil, badRequest("from is no date: write a date like 2027-01-31, in UTC, or a time like 2027-01-31T12:00:00Z")
		}
	}
	if text := r.URL.Query().Get("to"); text != "" {
		if s.to, err = config.ParseUntil(text); err != nil {
			return nil, badRequest("to is no date: write a date like 2027-01-31, which includes that day in UTC, or a time like " +
				"2027-01-31T12:00:00Z")
		}
	}
	if !s.from.IsZero() && !s.to.IsZero() && !s.from.Before(s.to) {
		return nil, badRequest("from is not before to: exchange them")
	}
	return s, nil
}

func (s *span) bounded() bool { return !s.from.IsZero() || !s.to.IsZero() }

// seen takes a present window.
func (s *span) seen(start, end time.Time) {
	if s.first.IsZero() || start.Before(s.first) {
		s.first = start
	}
	if end.After(s.last) {
		s.last = end
	}
	s.found = s.found || s.overlaps(start, end)
}

func (s *span) overlaps(start, end time.Time) bool {
	return (s.from.IsZero() || end.After(s.from)) && (s.to.IsZero() || start.Before(s.to))
}

// chosen keeps the limits whose present window overlaps the span. Without a span, it keeps all.
func (s *span) chosen(all []admin.LimitUsage) []admin.LimitUsage {
	if !s.bounded() {
		return all
	}
	kept := []admin.LimitUsage{}
	for i := range all {
		if l := &all[i]; l.Start != nil && s.overlaps(*l.Start, *l.End) {
			kept = append(kept, *l)
		}
	}
	return kept
}

// answered refuses a span that goes beyond the windows that the store has.
func (s *span) answered() *failure {
	switch {
	case !s.bounded() || s.first.IsZero():
		return nil
	case !s.from.IsZero() && s.from.Before(s.first), !s.found && !s.to.IsZero() && !s.to.After(s.first):
		return badRequest("the counting store has only the present windows, and the first of them began at " +
			s.first.Format(time.RFC3339) + ": leave out from and to, or ask for a later time; records of metering have past windows")
	case !s.found:
		return badRequest("no present window is in this time: the last of them ends at " + s.last.Format(time.RFC3339) +
			", so ask for an earlier time")
	default:
		return nil
	}
}
