package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/sentence"
	"github.com/headgate/headgate/internal/sorting"
)

// Bounds of a merged document.
const (
	maxClients   = 50
	maxStores    = 50
	maxAttention = 50
	maxMarks     = 20
)

// Member is an instance of a fleet with its last answer, which is nil if it has none that is fresh enough to count.
type Member struct {
	admin.LiveInstance

	Live *admin.Live
}

// OfLive makes one document of those of a fleet, with the first rules in an order: refused, passed or name. It has the identity of own, and
// the sums of the instances that are OK. Each instance has divided its counts by its own time, so a restarted instance or one that was
// hung adds no more than its own rate. A rule or a client that an instance does not list adds nothing.
func OfLive(own *admin.Live, members []Member, sort string, limit int) *admin.Live {
	merged := &admin.Live{
		Instance: own.Instance, Version: own.Version, Now: own.Now, Started: own.Started, State: own.State, Config: own.Config,
		PendingRestart: own.PendingRestart, Sequence: own.Sequence, Window: own.Window,
		Rules: []admin.LiveRule{}, Attention: []admin.Attention{},
	}
	var answers []*admin.Live
	for i := range members {
		m := &members[i]
		if m.OK && m.Live != nil {
			answers = append(answers, m.Live)
			m.Requests, m.Refused = m.Live.Totals.Requests, m.Live.Totals.Refused
		}
		merged.Instances = append(merged.Instances, m.LiveInstance)
	}
	merged.Totals = totals(answers)
	merged.Rules, merged.RulesTotal = liveRules(answers, sort, limit)
	merged.Clients, merged.ClientsTotal = liveClients(answers)
	merged.Throttle = liveThrottle(answers)
	merged.Stores = liveStores(answers)
	merged.Marks = marks(answers)
	merged.Attention, merged.AttentionTotal = attention(members, answers, own.Now)
	worst, _ := liveRules(answers, "refused", maxClients)
	merged.Sentence = sentence.Of(merged, worst)
	if len(answers) < len(members) {
		merged.Sentence = fmt.Sprintf("Over %d of %d instances: %s", len(answers), len(members), merged.Sentence)
	}
	return merged
}

// totals sums the rates. Histograms with other bounds than those of the first are left out.
func totals(answers []*admin.Live) admin.LiveTotals {
	sum := admin.LiveTotals{RefusedBy: map[string]float64{}}
	for _, l := range answers {
		t := &l.Totals
		sum.Requests, sum.Passed, sum.Refused = sum.Requests+t.Requests, sum.Passed+t.Passed, sum.Refused+t.Refused
		sum.WouldRefuse, sum.ServiceFailed = sum.WouldRefuse+t.WouldRefuse, sum.ServiceFailed+t.ServiceFailed
		sum.NoRule, sum.InFlight, sum.Waiting = sum.NoRule+t.NoRule, sum.InFlight+t.InFlight, sum.Waiting+t.Waiting
		for cause, rate := range t.RefusedBy {
			sum.RefusedBy[cause] += rate
		}
		if sum.DurationBounds == nil {
			sum.DurationBounds = t.DurationBounds
		}
		if slices.Equal(sum.DurationBounds, t.DurationBounds) {
			sum.ServiceTime, sum.RequestTime = buckets(sum.ServiceTime, t.ServiceTime), buckets(sum.RequestTime, t.RequestTime)
		}
	}
	return sum
}

// buckets adds the counts of a histogram to those of another one with the same bounds.
func buckets(sum, counts []uint64) []uint64 {
	sum = slices.Clone(sum)
	for i, n := range counts {
		if i == len(sum) {
			sum = append(sum, 0)
		}
		sum[i] += n
	}
	return sum
}

// since is the earlier of two times; nil is none.
func since(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// last is the later of two times; nil is none.
func last(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.After(*a) {
		return b
	}
	return a
}

// ruleName identifies a rule or a stage.
type ruleName struct{ kind, name string }

// sumOfRule is a rule in several instances. most is the highest rate of refusals, whose key is the most refused.
type sumOfRule struct {
	admin.LiveRule

	most   float64
	listed int
}

// liveRules merges rules by name. A rule differs if instances have other limits or modes, or if an instance that lists all its rules lacks
// it.
func liveRules(answers []*admin.Live, sort string, limit int) (first []admin.LiveRule, total int) {
	all, complete := map[ruleName]*sumOfRule{}, 0
	for _, l := range answers {
		total = max(total, l.RulesTotal)
		if len(l.Rules) >= l.RulesTotal {
			complete++
		}
		for i := range l.Rules {
			addRule(all, &l.Rules[i])
		}
	}
	first = make([]admin.LiveRule, 0, len(all))
	for _, r := range all {
		r.Differs = r.Differs || r.Kind == "rule" && complete == len(answers) && r.listed < complete
		first = append(first, r.LiveRule)
	}
	sorting.Func(first, func(a, b admin.LiveRule) int {
		return cmp.Or(inOrder(&a, &b, sort), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	return first[:min(len(first), limit)], max(total, len(first))
}

func addRule(all map[ruleName]*sumOfRule, r *admin.LiveRule) {
	sum := all[ruleName{r.Kind, r.Name}]
	if sum == nil {
		all[ruleName{r.Kind, r.Name}] = &sumOfRule{LiveRule: *r, most: r.Refused + r.WouldRefuse, listed: 1}
		return
	}
	sum.listed++
	sum.Passed, sum.Refused, sum.WouldRefuse = sum.Passed+r.Passed, sum.Refused+r.Refused, sum.WouldRefuse+r.WouldRefuse
	sum.Since, sum.Last = since(sum.Since, r.Since), last(sum.Last, r.Last)
	sum.Differs = sum.Differs || r.Differs || sum.Mode != r.Mode || !slices.Equal(sum.Limits, r.Limits)
	if most := r.Refused + r.WouldRefuse; r.Top != "" && (sum.Top == "" || most > sum.most) {
		sum.Top, sum.most = r.Top, most
	}
}

// inOrder compares two rules in the order of a call.
func inOrder(a, b *admin.LiveRule, sort string) int {
	switch sort {
	case "name":
		return 0
	case "passed":
		return cmp.Compare(b.Passed, a.Passed)
	default:
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.WouldRefuse, a.WouldRefuse), cmp.Compare(b.Passed, a.Passed))
	}
}

// liveClients sums the clients of fair share by name: each instance has a capacity of its own.
func liveClients(answers []*admin.Live) (first []admin.LiveClient, total int) {
	all := map[string]*admin.LiveClient{}
	for _, l := range answers {
		total = max(total, l.ClientsTotal)
		for i := range l.Clients {
			c := &l.Clients[i]
			sum := all[c.Name]
			if sum == nil {
				sum = &admin.LiveClient{Name: c.Name}
				all[c.Name] = sum
			}
			sum.Demand, sum.Size, sum.Default = sum.Demand+c.Demand, sum.Size+c.Size, sum.Default+c.Default
			sum.Admitted, sum.Refused, sum.Since = sum.Admitted+c.Admitted, sum.Refused+c.Refused, since(sum.Since, c.Since)
		}
	}
	for _, c := range all {
		first = append(first, *c)
	}
	sorting.Func(first, func(a, b admin.LiveClient) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Demand, a.Demand), strings.Compare(a.Name, b.Name))
	})
	return first[:min(len(first), maxClients)], max(total, len(first))
}

// liveThrottle sums the queues in front of the services. The mean wait is the longest one, because the waits of each are not known.
func liveThrottle(answers []*admin.Live) *admin.LiveThrottle {
	var sum *admin.LiveThrottle
	for _, l := range answers {
		t := l.Throttle
		if t == nil {
			continue
		}
		if sum == nil {
			sum = &admin.LiveThrottle{Mode: t.Mode, Queued: map[string]int{}, Refused: map[string]float64{}, Reasons: map[string]float64{}}
		}
		sum.InFlight, sum.Concurrency, sum.Advised = sum.InFlight+t.InFlight, sum.Concurrency+t.Concurrency, sum.Advised+t.Advised
		sum.MeanWait, sum.Hung = max(sum.MeanWait, t.MeanWait), sum.Hung || t.Hung
		for class, n := range t.Queued {
			sum.Queued[class] += n
		}
		for class, rate := range t.Refused {
			sum.Refused[class] += rate
		}
		for reason, rate := range t.Reasons {
			sum.Reasons[reason] += rate
		}
	}
	return sum
}

// liveStores sums the calls to each server of a shared store. The state is the worst one, and the error the last one.
func liveStores(answers []*admin.Live) []admin.LiveStore {
	worse := map[string]int{"open": 2, "half_open": 1}
	all := map[string]*admin.LiveStore{}
	for _, l := range answers {
		for i := range l.Stores {
			s := &l.Stores[i]
			sum := all[s.Address]
			if sum == nil {
				sum = &admin.LiveStore{Address: s.Address, State: s.State}
				all[s.Address] = sum
			}
			sum.Calls, sum.Failed = sum.Calls+s.Calls, sum.Failed+s.Failed
			if worse[s.State] > worse[sum.State] {
				sum.State = s.State
			}
			if s.LastErrorAt != nil && last(sum.LastErrorAt, s.LastErrorAt) == s.LastErrorAt {
				sum.LastError, sum.LastErrorAt = s.LastError, s.LastErrorAt
			}
		}
	}
	var list []admin.LiveStore
	for _, address := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[address])
	}
	return list[:min(len(list), maxStores)]
}

// marks has the last changes of all instances. What several instances have noted with the same words at the same time is one change, as
// one of a source is.
func marks(answers []*admin.Live) []admin.Mark {
	var all []admin.Mark
	for _, l := range answers {
		for _, m := range l.Marks {
			if m.Instance == "" {
				m.Instance = l.Instance
			}
			same := slices.IndexFunc(all, func(o admin.Mark) bool { return o.At.Equal(m.At) && o.Text == m.Text && o.By == m.By })
			if same >= 0 {
				all[same].Instance = joinedNames(all[same].Instance, m.Instance)
				continue
			}
			all = append(all, m)
		}
	}
	sorting.StableFunc(all, func(a, b admin.Mark) int { return b.At.Compare(a.At) })
	return all[:min(len(all), maxMarks)]
}

// maxNames bounds a list of names in a text, in bytes.
const maxNames = 200

func joinedNames(names, more string) string {
	if more == "" || len(names) > maxNames || strings.Contains(", "+names+", ", ", "+more+", ") {
		return names
	}
	return names + ", " + more
}

// level orders what needs attention.
func level(a *admin.Attention) int {
	return map[string]int{"fault": 0, "warning": 1}[a.Level] + map[bool]int{true: 2}[a.Level != "fault" && a.Level != "warning"]
}

// attention has the instances that do not answer first, then what differs between instances, and then what the instances say. What several
// instances say with the same words is one entry.
func attention(members []Member, answers []*admin.Live, now time.Time) (list []admin.Attention, total int) {
	list = missing(members, len(answers), now)
	list = append(list, drift(members)...)
	for _, l := range answers {
		total += max(0, l.AttentionTotal-len(l.Attention))
		for _, a := range l.Attention {
			if a.Instance == "" {
				a.Instance = l.Instance
			}
			same := slices.IndexFunc(list, func(o admin.Attention) bool {
				return o.Level == a.Level && o.About == a.About && o.Name == a.Name && o.Text == a.Text
			})
			if same < 0 {
				list = append(list, a)
				continue
			}
			list[same].Instance = joinedNames(list[same].Instance, a.Instance)
			list[same].Since = since(list[same].Since, a.Since)
		}
	}
	sorting.StableFunc(list, func(a, b admin.Attention) int { return cmp.Compare(level(&a), level(&b)) })
	total += len(list)
	return list[:min(len(list), maxAttention)], total
}

// missing names the instances that are not in the sums.
func missing(members []Member, counted int, now time.Time) []admin.Attention {
	list := []admin.Attention{}
	for i := range members {
		m := &members[i]
		if m.OK && m.Live != nil {
			continue
		}
		text := "does not answer"
		if m.Seen != nil {
			text += fmt.Sprintf(", last %s ago", max(0, now.Sub(*m.Seen)).Round(time.Second))
		}
		if m.Error != "" {
			text += ": " + m.Error
		}
		text = fmt.Sprintf("%s (%s) %s: sums are over %d of %d instances", cmp.Or(m.Name, "an instance"), m.Address, text, counted,
			len(members))
		list = append(list, admin.Attention{
			Level: "fault", About: "instance", Name: cmp.Or(m.Name, m.Address), Text: text, Since: m.Seen, Instance: m.Name,
		})
	}
	return list
}

// drift says that instances decide by other configurations.
func drift(members []Member) []admin.Attention {
	by := map[string][]string{}
	for i := range members {
		if m := &members[i]; m.OK && m.Config != "" {
			by[m.Config] = append(by[m.Config], m.Name)
		}
	}
	if len(by) < 2 {
		return nil
	}
	var sides []string
	for _, digest := range slices.Sorted(maps.Keys(by)) {
		names := ""
		for _, name := range slices.Sorted(slices.Values(by[digest])) {
			if names == "" {
				names = name
				continue
			}
			names = joinedNames(names, name)
		}
		sides = append(sides, names+" "+plural(len(by[digest]))+" "+digest[:min(len(digest), 8)])
	}
	const most = 4
	if more := len(sides) - most; more > 0 {
		sides = append(sides[:most], fmt.Sprintf("and %d more", more))
	}
	return []admin.Attention{{
		Level: "warning", About: "instance", Name: "configuration",
		Text: "instances have different configurations: " + strings.Join(sides, "; ") + ": reload those with the older one",
	}}
}

func plural(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}
