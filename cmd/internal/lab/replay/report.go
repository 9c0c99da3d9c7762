package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/cmd/internal/lab/replay/tally"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Report is what a replay found out. Its form in JSON has a schema: see Schema.
type Report struct {
	// Version is the version of this form: 1.
	Version int `json:"version"`
	// Partial says that the replay was stopped before the end of the logs.
	Partial bool         `json:"partial,omitempty"`
	Config  string       `json:"config"`
	Files   []FileReport `json:"files"`
	// First and Last are the times of the first and the last request. ActiveMinutes of the SpanMinutes between have requests.
	First         string `json:"first,omitempty"`
	Last          string `json:"last,omitempty"`
	SpanMinutes   int64  `json:"span_minutes"`
	ActiveMinutes int64  `json:"active_minutes"`

	Requests int64 `json:"requests"`
	Passed   int64 `json:"passed"`
	Refused  int64 `json:"refused"`
	Waited   int64 `json:"waited"`
	// Degraded requests passed over a limit, with the mark of on_exceed.
	Degraded int64 `json:"degraded"`
	// Several requests were refused by more than one rule, and count for the first of them in the file.
	Several int64 `json:"refused_by_several"`
	// Unmatched requests matched no rule, and Exempt ones are in the section exempt.
	Unmatched int64 `json:"unmatched"`
	Exempt    int64 `json:"exempt"`
	// Invalid requests are answered with 400 before any rule.
	Invalid map[string]int64 `json:"invalid,omitempty"`
	Reasons map[string]int64 `json:"reasons,omitempty"`
	// Within says where the lines of a second are, and Other has the refusals with the other setting; nil if it makes no difference.
	Within string        `json:"within_second"`
	Other  *OtherSeconds `json:"other_within_second,omitempty"`
	Order  OrderReport   `json:"order"`
	// Clients are the addresses of the clients.
	Clients KeyCounts    `json:"clients"`
	Rules   []RuleReport `json:"rules"`
	// Logged compares with the verdicts that the log has; nil without any.
	Logged *LoggedVerdicts `json:"logged_verdicts,omitempty"`
	// Timeline has the requests over time.
	Timeline TimelineReport `json:"timeline"`
	// Sample says that figures by key are those of one in so many keys; 1 is all keys.
	Sample    int64       `json:"sample"`
	Evictions uint64      `json:"evictions"`
	Malformed []Malformed `json:"malformed,omitempty"`
	// MalformedCount is the number of all malformed lines.
	MalformedCount int64        `json:"malformed_count"`
	LeftOut        []string     `json:"left_out,omitempty"`
	Notes          []string     `json:"notes"`
	Against        *Comparison  `json:"against,omitempty"`
	Suggestions    []Suggestion `json:"suggestions,omitempty"`
}

// OtherSeconds has the refusals with the other setting of --within-second.
type OtherSeconds struct {
	Within  string           `json:"within_second"`
	Refused int64            `json:"refused"`
	Rules   map[string]int64 `json:"rules"`
}

// OrderReport says what could not be put in order.
type OrderReport struct {
	WindowSeconds float64 `json:"window_seconds"`
	// Late lines were further back than the window, and were taken at its edge. Long requests lasted longer than the window.
	Late int64 `json:"late"`
	Long int64 `json:"long"`
	// Forced lines left the window before their time, because too many lines waited.
	Forced int64 `json:"forced"`
}

// KeyCounts counts keys.
type KeyCounts struct {
	Keys    int64 `json:"keys"`
	Refused int64 `json:"refused"`
}

// RuleReport is what one rule did.
type RuleReport struct {
	Name string `json:"name"`
	Mode string `json:"mode,omitempty"`
	// Requests matched. Refused were refused by this rule, First of them by this rule as the first of the file.
	Requests int64 `json:"requests"`
	Refused  int64 `json:"refused"`
	First    int64 `json:"refused_first"`
	// Degraded passed over a limit of the rule, with the mark of on_exceed.
	Degraded int64            `json:"degraded,omitempty"`
	Reasons  map[string]int64 `json:"reasons,omitempty"`
	Keys     KeyCounts        `json:"keys"`
	Top      []TopKey         `json:"top_keys,omitempty"`
	Limits   []LimitReport    `json:"limits,omitempty"`
}

// TopKey is a key with many refusals or requests.
type TopKey struct {
	Key      string `json:"key"`
	Requests int64  `json:"requests"`
	Refused  int64  `json:"refused"`
	// First is the time of the first refusal.
	First string `json:"first_refused,omitempty"`
	// Peaks are the most units in any window of each limit; -1 is unknown: the key has an override, or the limit a calendar.
	Peaks []int64 `json:"peaks,omitempty"`
}

// LimitReport has the peaks of the keys for one limit: the most counted units of a key in any window of the limit's length, which is
// aligned for fixed_window. Keys with an override are left out. Without any peak, each is -1.
type LimitReport struct {
	Limit     string `json:"limit"`
	Algorithm string `json:"algorithm"`
	P50       int64  `json:"peak_p50"`
	P90       int64  `json:"peak_p90"`
	P99       int64  `json:"peak_p99"`
	P999      int64  `json:"peak_p99_9"`
	Most      int64  `json:"peak_max"`
	// Longer says that the window is longer than the log, so that counters that start empty hide refusals.
	Longer bool `json:"longer_than_log,omitempty"`
	// TooFine says that the window is not longer than the resolution of the log.
	TooFine bool `json:"too_fine,omitempty"`
}

// LoggedVerdicts compares the verdicts of the log with those of the replay.
type LoggedVerdicts struct {
	BothPass   int64 `json:"both_pass"`
	OnlyReplay int64 `json:"only_replay_refuses"`
	OnlyLog    int64 `json:"only_log_refuses"`
	BothRefuse int64 `json:"both_refuse"`
}

// TimelineReport has the requests of equal steps.
type TimelineReport struct {
	Start       string  `json:"start,omitempty"`
	StepSeconds float64 `json:"step_seconds"`
	Requests    []int64 `json:"requests"`
	Refused     []int64 `json:"refused"`

	start headgate.Instant
	step  time.Duration
}

// maxTop bounds the keys that are listed for a rule.
const maxTop = 10

func (p *replay) report() *Report {
	t, f := p.first, &p.run.facts
	r := &Report{
		Version: 1, Config: p.options.Name, Requests: t.counts.Requests, Refused: t.counts.Refused, Waited: t.counts.Waited,
		Degraded: t.counts.Degraded,
		Several:  t.counts.Several, Unmatched: t.counts.Unmatched, Exempt: t.counts.Exempt, Within: p.options.Within.String(),
		Sample: t.keys.Sample(), Evictions: t.engine.Evictions(), Malformed: f.malformed, MalformedCount: f.malformedCount,
		LeftOut: t.leftOut, Invalid: map[string]int64{}, Reasons: reasonsOf(&t.counts.Reasons), Files: p.run.logs.reports(),
	}
	invalids := int64(0)
	for i, n := range t.counts.Invalid {
		if invalids += n; n > 0 {
			r.Invalid[invalidNames[i]] = n
		}
	}
	r.Passed = r.Requests - r.Refused - invalids
	if f.requests > 0 {
		r.First, r.Last = timeText(f.first), timeText(f.last)
		r.SpanMinutes = int64(f.last/headgate.Instant(time.Minute)-f.first/headgate.Instant(time.Minute)) + 1
		r.ActiveMinutes = f.minutes
	}
	counts := p.run.window.Counts()
	r.Order = OrderReport{cmp.Or(p.options.Reorder, DefaultReorder).Seconds(), counts.Late, f.long, counts.Forced}
	r.Clients = keyCounts(t.keys, clientOwner)
	for n := range t.rules {
		if own := p.ruleReport(n); own != nil {
			r.Rules = append(r.Rules, *own)
		}
	}
	if l := &t.counts.Logged; f.verdicts > 0 {
		r.Logged = &LoggedVerdicts{l[0][0], l[0][1], l[1][0], l[1][1]}
	}
	r.Timeline = timelineOf(&t.timeline)
	p.reportTwin(r)
	if p.compare != nil {
		r.Against = p.compare.report(p.options.AgainstName, p.against.leftOut)
	}
	r.Notes = p.notes(r)
	return r
}

// reportTwin adds the refusals with the other times of whole seconds.
func (p *replay) reportTwin(r *Report) {
	if p.twin == nil {
		return
	}
	r.Other = &OtherSeconds{Within: p.other.String(), Refused: p.twin.counts.Refused, Rules: map[string]int64{}}
	for n := range p.twin.rules {
		if own := p.twin.rules[n].rule; own != nil {
			r.Other.Rules[own.Name] = p.twin.rules[n].Refused
		}
	}
}

// ruleReport reports one rule, or fair share. It is nil for fair share and stages without a request.
func (p *replay) ruleReport(n int) *RuleReport {
	t := p.first
	counts := &t.rules[n]
	r := counts.rule
	if r == nil {
		if n >= len(t.config.Rules) {
			return nil
		}
		r = &t.config.Rules[n]
	}
	own := &RuleReport{
		Name: r.Name, Requests: counts.Requests, Refused: counts.Refused, First: counts.First, Degraded: counts.Degraded,
		Reasons: reasonsOf(&counts.Reasons),
	}
	if r.Mode != guard.Enforce {
		own.Mode = r.Mode.String()
	}
	if n >= len(t.config.Rules) {
		return own
	}
	own.Keys = keyCounts(t.keys, n)
	keys := t.keys.Of(n)
	own.Top = topKeys(keys, len(r.Policies))
	for i := range r.Policies {
		l := p.limitReport(&r.Policies[i], i, keys)
		if r.Mode == guard.Off {
			l.Longer, l.TooFine = false, false
		}
		own.Limits = append(own.Limits, l)
	}
	return own
}

func (p *replay) limitReport(policy *headgate.Policy, i int, keys []*tally.Key) LimitReport {
	f := &p.run.facts
	l := LimitReport{Limit: policy.Limit.String(), Algorithm: policy.Algorithm.String()}
	peaks := make([]int64, 0, len(keys))
	for _, k := range keys {
		if peak := k.Peak(i); peak >= 0 {
			peaks = append(peaks, peak)
		}
	}
	slices.Sort(peaks)
	l.P50, l.P90, l.P99, l.P999 = percentile(peaks, 500), percentile(peaks, 900), percentile(peaks, 990), percentile(peaks, 999)
	l.Most = percentile(peaks, 1000)
	if f.requests > 0 {
		l.Longer = policy.Limit.Length() > f.last.Sub(f.first)
		l.TooFine = f.resolution > 0 && policy.Limit.Length() <= f.resolution
	}
	return l
}

// percentile returns the smallest of sorted numbers that is not below so many thousandths of them.
func percentile(sorted []int64, thousandths int) int64 {
	if len(sorted) == 0 {
		return -1
	}
	return sorted[max(0, (len(sorted)*thousandths+999)/1000-1)]
}

func keyCounts(k *tally.Keys, owner int) (c KeyCounts) {
	for _, key := range k.Of(owner) {
		c.Keys += k.Sample()
		if key.Refused > 0 {
			c.Refused += k.Sample()
		}
	}
	return c
}

// topKeys lists the keys with most refusals, and among equal ones those with most requests.
func topKeys(keys []*tally.Key, limits int) (top []TopKey) {
	order := slices.Clone(keys)
	slices.SortStableFunc(order, func(a, b *tally.Key) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Requests, a.Requests))
	})
	for _, k := range order[:min(len(order), maxTop)] {
		t := TopKey{Key: string(rule.PlainKeyNames().AppendKey(nil, k.Text)), Requests: k.Requests, Refused: k.Refused}
		if k.Refused > 0 {
			t.First = timeText(k.First)
		}
		for i := range limits {
			t.Peaks = append(t.Peaks, k.Peak(i))
		}
		top = append(top, t)
	}
	return top
}

func reasonsOf(counts *[headgate.ReasonCount]int64) map[string]int64 {
	all := map[string]int64{}
	for i, n := range counts {
		if n > 0 {
			all[headgate.Reason(i).String()] = n
		}
	}
	return all
}

func timeText(t headgate.Instant) string { return t.Time().Format("2006-01-02T15:04:05.999Z07:00") }

func timelineOf(l *tally.Timeline) TimelineReport {
	steps, start, step := l.Steps()
	r := TimelineReport{StepSeconds: step.Seconds(), start: start, step: step, Requests: []int64{}, Refused: []int64{}}
	if len(steps) > 0 {
		r.Start = timeText(start)
	}
	for _, s := range steps {
		r.Requests, r.Refused = append(r.Requests, s.Requests), append(r.Refused, s.Refused)
	}
	return r
}

// reports completes what was read of each file.
func (m *merged) reports() (all []FileReport) {
	for _, f := range m.files {
		r := f.FileReport
		if f.reader != nil {
			kind := f.reader.Kind()
			r.Format, r.Hides = kind.Name, kind.Hides
			r.Moment = momentOf(f.reader)
		}
		for kind, n := range f.skipped {
			if n > 0 && r.Skipped == nil {
				r.Skipped = map[string]int64{}
			}
			if n > 0 {
				r.Skipped[logs.Skip(kind).String()] = n
			}
		}
		if r.Requests > 0 {
			r.First, r.Last = timeText(f.first), timeText(f.last)
		}
		r.Back, r.BackLine = f.back.Seconds(), f.backLine
		if f.cut != nil {
			r.Cut = f.cut.Error()
		}
		all = append(all, r)
	}
	return all
}

// momentOf says what the times of a log are.
func momentOf(r *logs.Reader) string {
	kind := r.Kind()
	text := fmt.Sprintf("%s (%s)", kind.Moment, kind.Formula)
	if r.EndIsTime() {
		text = "the end of the answer, minus its duration where the line has it"
	}
	return strings.TrimSpace(text)
}
