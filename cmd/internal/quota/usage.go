package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/objects"
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

// Usage is the component of the calls about what customers have used.
type Usage struct {
	component.Defaults

	log       *slog.Logger
	guard     *guard.Guard
	customers Customers
}

// Customers lists the customers that have an entry.
type Customers interface {
	// Names gives the names of at most n objects of a kind, after a name and in their order.
	Names(kind source.Kind, after string, n int) ([]string, *calls.Failure)
}

// NewUsage makes the component.
func NewUsage(log *slog.Logger, g *guard.Guard, customers Customers) *Usage {
	return &Usage{log: log, guard: g, customers: customers}
}

// Calls implements component.Component.
func (u *Usage) Calls() []calls.Call {
	return []calls.Call{
		{Pattern: "GET /api/v1/usage", Scope: config.ScopeAdminister, Handler: calls.OwnSiteOrProgram(
			calls.Parameters(u.log, u.listUsage, "customer", "limit", "after", "from", "to"))},
		{Pattern: "POST /api/v1/usage/reset", Scope: config.ScopeAdminister, Handler: calls.OwnSiteOrProgram(
			calls.Parameters(u.log, u.reset, "customer", "quota", "period", "dry_run", "reason"))},
	}
}

// listUsage answers with what one customer has used, or with a page of all customers that have an entry. The store has
// no list of the others.
func (u *Usage) listUsage(w http.ResponseWriter, r *http.Request) {
	span, failure := spanOf(r)
	if failure != nil {
		calls.Fail(u.log, w, failure)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), usageTimeout)
	defer cancel()
	query := r.URL.Query()
	var names []string
	answer := admin.Usage{Customers: []admin.CustomerUsage{}}
	if query.Has("customer") {
		names = []string{query.Get("customer")}
	} else if names, answer.Next, failure = u.pageOfCustomers(r); failure != nil {
		calls.Fail(u.log, w, failure)
		return
	}
	all, failure := u.usageOf(ctx, names)
	if failure != nil {
		calls.Fail(u.log, w, failure)
		return
	}
	if failure := u.judge(span, query.Has("customer"), all); failure != nil {
		calls.Fail(u.log, w, failure)
		return
	}
	for i := range all {
		all[i].Limits = span.chosen(all[i].Limits)
		answer.Customers = append(answer.Customers, all[i])
	}
	calls.WriteJSON(u.log, w, answer)
}

// judge refuses a time that the store does not have. For the list, the windows of all limits decide, so that each page gives
// the same answer.
func (u *Usage) judge(s *span, one bool, all []admin.CustomerUsage) *calls.Failure {
	if !s.bounded() {
		return nil
	}
	if !one {
		if first, last, found := u.guard.PresentWindows(); found {
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
func (u *Usage) pageOfCustomers(r *http.Request) (names []string, next string, f *calls.Failure) {
	n, f := calls.PageSize(r.URL.Query().Get("limit"), calls.DefaultPage, maxUsagePage)
	if f != nil {
		return nil, "", f
	}
	all, f := u.customers.Names(source.Customer, r.URL.Query().Get("after"), n+1)
	if f != nil {
		return nil, "", f
	}
	if len(all) > n {
		return all[:n], all[n-1], nil
	}
	return all, "", nil
}

// usageOf reads what customers have used.
func (u *Usage) usageOf(ctx context.Context, names []string) ([]admin.CustomerUsage, *calls.Failure) {
	g := u.guard
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

func failureOfUsage(err error, written bool) *calls.Failure {
	unknown, value := new(guard.UnknownQuotaError), new(rule.OverrideError)
	if errors.As(err, &unknown) {
		return calls.Failed(admin.Failure{Code: admin.CodeNotFound, Error: err.Error()}, http.StatusNotFound)
	}
	if errors.As(err, &value) {
		return calls.BadRequest("the name of the customer: " + value.Problem + ": " + value.Fix)
	}
	f := calls.Unavailable(err)
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
func (u *Usage) reset(w http.ResponseWriter, r *http.Request) {
	t, failure := calls.TermsOf(r, false)
	query := r.URL.Query()
	name, quota, period := query.Get("customer"), query.Get("quota"), query.Get("period")
	if failure == nil && (name == "" || len(name) > source.MaxName) {
		failure = calls.BadRequest("customer is missing or too long: write ?customer=NAME")
	}
	if failure != nil {
		calls.Fail(u.log, w, failure)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), usageTimeout)
	defer cancel()
	g, record := u.guard, objects.Record(r, source.Key{Kind: source.Customer, Name: name}.String(), t.Reason)
	do := g.ResetUsage
	if t.DryRun {
		do = g.UsageOf
	}
	before, err := do(ctx, name, quota, period)
	record.Action, record.Before, record.After = "reset", usedText(before), "0 units"
	if failure := failureOfReset(err); failure != nil {
		if failure.Code == admin.CodeUnavailable && !t.DryRun {
			record.After = "not known"
			if len(before) == 0 { // The counters could not be read, so nothing was given back.
				record.Before, record.After = "not known", "unchanged"
			}
			objects.Audit(u.log, &record, err)
		}
		calls.Fail(u.log, w, failure)
		return
	}
	if !t.DryRun {
		objects.Audit(u.log, &record, nil)
	}
	calls.WriteJSON(u.log, w, admin.Reset{Customer: name, DryRun: t.DryRun, Before: limitUsage(before)})
}

func failureOfReset(err error) *calls.Failure {
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
func spanOf(r *http.Request) (s *span, f *calls.Failure) {
	s = new(span)
	var err error
	if text := r.URL.Query().Get("from"); text != "" {
		if s.from, err = time.Parse(time.DateOnly, text); err != nil {
			s.from, err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			return nil, calls.BadRequest("from is no date: write a date like 2027-01-31, in UTC, or a time like 2027-01-31T12:00:00Z")
		}
	}
	if text := r.URL.Query().Get("to"); text != "" {
		if s.to, err = config.ParseUntil(text); err != nil {
			return nil, calls.BadRequest("to is no date: write a date like 2027-01-31, which includes that day in UTC, or a time like " +
				"2027-01-31T12:00:00Z")
		}
	}
	if !s.from.IsZero() && !s.to.IsZero() && !s.from.Before(s.to) {
		return nil, calls.BadRequest("from is not before to: exchange them")
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
func (s *span) answered() *calls.Failure {
	switch {
	case !s.bounded() || s.first.IsZero():
		return nil
	case !s.from.IsZero() && s.from.Before(s.first), !s.found && !s.to.IsZero() && !s.to.After(s.first):
		return calls.BadRequest("the counting store has only the present windows, and the first of them began at " +
			s.first.Format(time.RFC3339) + ": leave out from and to, or ask for a later time; records of metering have past windows")
	case !s.found:
		return calls.BadRequest("no present window is in this time: the last of them ends at " + s.last.Format(time.RFC3339) +
			", so ask for an earlier time")
	default:
		return nil
	}
}
