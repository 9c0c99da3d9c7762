package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/sentence"
	"github.com/headgate/headgate/cmd/internal/fairshare"
	"github.com/headgate/headgate/cmd/internal/rules"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/rule"
)

// Bounds of an answer.
const (
	defaultRules  = 50
	maxRules      = 200
	maxClients    = 50
	maxAttention  = 50
	maxMarks      = 20
	maxStores     = 50
	maxPending    = 50
	maxLimitTexts = 6
	// maxKeyText bounds the bytes of a shown key or client.
	maxKeyText = 160
	maxLive    = 64 << 10
)

// query is what a caller wants to see. Equal queries have one answer in a second.
type query struct {
	sort  string
	limit int
	// plain says that the caller sees the names of clients and keys themselves.
	plain bool
}

// answers are those of the present second.
type answers struct {
	sequence uint64
	made     map[query][]byte
}

// maxAnswers bounds the different answers that are kept for a second.
const maxAnswers = 16

// answer gives the answer to a query, which is made once a second.
func (c *Component) answer(q query) ([]byte, error) {
	c.answering.Lock()
	defer c.answering.Unlock()
	sequence := c.sequence()
	if a := &c.answers; a.made == nil || a.sequence != sequence || len(a.made) >= maxAnswers {
		*a = answers{sequence, map[query][]byte{}}
	}
	if text, made := c.answers.made[q]; made {
		return text, nil
	}
	text, err := c.fitted(c.Live(q.sort, q.limit, q.plain))
	if err == nil {
		c.answers.made[q] = text
	}
	return text, err
}

func (c *Component) sequence() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sampler.sequence
}

// fitted encodes an answer. Beyond the bound it has fewer entries.
func (*Component) fitted(l *admin.Live) ([]byte, error) {
	for {
		text, err := json.Marshal(l)
		if err != nil || len(text) < maxLive || len(l.Rules)+len(l.Attention)+len(l.Clients) == 0 {
			return append(text, '\n'), err //nolint:wrapcheck // The document has no value that cannot be encoded.
		}
		l.Rules, l.Clients = l.Rules[:len(l.Rules)/2], l.Clients[:len(l.Clients)/2]
		l.Attention, l.Marks = l.Attention[:len(l.Attention)/2], l.Marks[:len(l.Marks)/2]
		l.Stores, l.Instances = l.Stores[:min(len(l.Stores), maxStores/2)], l.Instances[:min(len(l.Instances), maxStores)]
	}
}

// Live is what the instance does now, with the first rules in an order: refused, passed or name. The caller holds answering.
func (c *Component) Live(sort string, limit int, plain bool) *admin.Live {
	now := c.o.Config()
	l := &admin.Live{
		Instance: c.o.Host.Name(now), Version: c.o.Version, Started: c.o.Started.UTC(), State: "serving",
		Now: c.o.Started.UTC(), Rules: []admin.LiveRule{}, Attention: []admin.Attention{}, PendingRestart: c.o.Waiting(),
	}
	if c.o.Instance.Stopping() {
		l.State = "draining"
	}
	l.PendingRestart = l.PendingRestart[:min(len(l.PendingRestart), maxPending)]
	l.Config = c.digester.Digest(now)
	c.mu.Lock()
	c.sampler.show(l, &shown{sort: sort, limit: limit, plain: plain, part: clientPart(now), names: c.o.Sources.Report.KeyNames()})
	worst := c.sampler.ruleList(maxAttention, byTrouble)
	c.mu.Unlock()
	c.showTop(l, now, plain)
	for _, part := range c.o.Components() {
		if s, shows := part.(Shower); shows {
			s.Show(l)
		}
	}
	c.mark(l)
	c.attend(l, worst)
	l.Sentence = sentence.Of(l, worst)
	return l
}

// mark adds the last reloads and the last actions of operators, the newest first.
func (c *Component) mark(l *admin.Live) {
	l.Marks = append(c.o.Host.History.Marks(), c.o.Host.Actions.Marks(maxMarks)...)
	sorting.StableFunc(l.Marks, func(a, b admin.Mark) int { return b.At.Compare(a.At) })
	l.Marks = l.Marks[:min(len(l.Marks), maxMarks)]
}

// clientPart is what identifies a client of fair share.
func clientPart(c *config.Config) (part rule.Part) {
	if c.FairShare != nil {
		part = c.FairShare.Client
	}
	return part
}

// showTop adds the most refused key of each rule.
func (c *Component) showTop(l *admin.Live, now *config.Config, plain bool) {
	var asked []string
	for i := range l.Rules {
		if r := &l.Rules[i]; r.Refused+r.WouldRefuse > 0 {
			asked = append(asked, r.Name)
		}
	}
	names := c.o.Sources.Report.KeyNames()
	if plain && now.Log.Keys == config.KeysByReader {
		names = rule.PlainKeyNames()
	}
	keys := c.o.Sources.Report.TopKeyOfEach(asked, names)
	for i := range l.Rules {
		if k, found := keys[l.Rules[i].Name]; found {
			l.Rules[i].Top = cut(k.Key)
		}
	}
}

// cut bounds a text that clients choose.
func cut(text string) string {
	if len(text) <= maxKeyText {
		return text
	}
	return strings.ToValidUTF8(text[:maxKeyText], "") + "..."
}

// shown is what a caller sees.
type shown struct {
	sort  string
	limit int
	plain bool
	part  rule.Part
	names *rule.KeyNames
}

// show adds what the sampler knows.
func (s *sampler) show(l *admin.Live, to *shown) {
	l.Sequence, l.Window = s.sequence, int(s.seconds())
	if s.end > 0 {
		l.Now = time.Unix(s.end, 0).UTC()
	}
	s.showTotals(&l.Totals)
	s.showRules(l, to)
	s.showClients(l, to)
	s.showThrottle(l)
	s.showStores(l)
}

func (s *sampler) showTotals(to *admin.LiveTotals) {
	t := s.totals
	*to = admin.LiveTotals{
		Requests: s.rate(t.requests), Passed: s.rate(t.passed), Refused: s.rate(t.refused), WouldRefuse: s.rate(t.wouldRefuse),
		ServiceFailed: s.rate(t.serviceFailed), NoRule: s.rate(t.noRule), RefusedBy: map[string]float64{},
		InFlight: int64(t.inFlight.last), Waiting: int64(t.waiting.last),
	}
	for c, name := range causeNames {
		if n := s.rate(t.refusedBy[c]); n > 0 {
			to.RefusedBy[name] = n
		}
	}
	s.showDurations(to)
}

// ordersTable says which of two rules comes first.
var ordersTable = map[string]func(a, b *slot) int{
	"refused": byTrouble,
	"passed":  func(a, b *slot) int { return cmp.Compare(b.window[passed].sum(), a.window[passed].sum()) },
	"name":    func(a, b *slot) int { return cmp.Compare(a.name, b.name) },
}

// byTrouble has the rules first that refuse most, then those that would, and then those in use.
func byTrouble(a, b *slot) int {
	for _, count := range [...]int{refused, wouldRefuse, passed} {
		if order := cmp.Compare(b.window[count].sum(), a.window[count].sum()); order != 0 {
			return order
		}
	}
	return 0
}

// first gives the first n rules of an order, without sorting all of them: most rules are idle.
func (s *sampler) first(n int, order func(a, b *slot) int) (first []*slot) {
	compare := func(a, b *slot) int {
		if first := order(a, b); first != 0 {
			return first
		}
		return strings.Compare(a.name, b.name)
	}
	for _, one := range s.slots {
		if !one.listed() {
			continue
		}
		if len(first) == n && compare(one, first[n-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(first, one, compare)
		first = slices.Insert(first[:min(len(first), n-1)], at, one)
	}
	return first
}

// listed says that the rule decides, or the stage has decided.
func (s *slot) listed() bool {
	return !s.off && (!s.stage || s.name != guard.SentName && s.name != guard.SourceName || s.last != [ruleCounts]uint64{})
}

func (s *sampler) showRules(l *admin.Live, to *shown) {
	l.Rules = append(l.Rules, s.ruleList(to.limit, ordersTable[to.sort])...)
	for _, one := range s.slots {
		if one.listed() {
			l.RulesTotal++
		}
	}
}

// ruleList describes the first n rules of an order.
func (s *sampler) ruleList(n int, order func(a, b *slot) int) (list []admin.LiveRule) {
	seconds := s.seconds()
	for _, one := range s.first(n, order) {
		r := admin.LiveRule{
			Name: one.name, Kind: one.kind(), Mode: rules.ModeText(one.rule), TrialOf: one.rule.TrialOf, Limits: limitTexts(one.rule),
			Passed: one.window[passed].rate(seconds), Refused: one.window[refused].rate(seconds),
			WouldRefuse: one.window[wouldRefuse].rate(seconds),
		}
		r.Since, r.Last = one.run.shown(s.end)
		list = append(list, r)
	}
	return list
}

// kind is the value of LiveRule.Kind.
func (s *slot) kind() string {
	switch {
	case s.rule.TrialOf != "":
		return "trial"
	case !s.stage:
		return "rule"
	case s.name == guard.FairShareName, s.name == throttler.Name:
		return s.name
	default:
		return "stage"
	}
}

func limitTexts(r *guard.Rule) []string {
	texts := rules.LimitTexts(r)
	if r.InFlight > 0 {
		texts = append(texts, fmt.Sprintf("%d in flight", r.InFlight))
	}
	if more := len(texts) - maxLimitTexts; more > 0 {
		texts = append(texts[:maxLimitTexts], fmt.Sprintf("and %d more", more))
	}
	return texts
}

func (s *sampler) showClients(l *admin.Live, to *shown) {
	l.ClientsTotal = len(s.clients.all)
	first := make([]*client, 0, maxClients)
	for _, one := range s.clients.all {
		if len(first) == maxClients && one.before(first[maxClients-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(first, one, (*client).before)
		first = slices.Insert(first[:min(len(first), maxClients-1)], at, one)
	}
	seconds := s.seconds()
	for _, one := range first {
		shown := admin.LiveClient{
			Name: cut(one.shownTo(to)), Demand: float64(one.now.Demand), Size: float64(one.now.Size), Default: float64(one.now.Default),
			Refused:  one.window[clientRefused].rate(seconds),
			Admitted: per(uint64(float64(one.window[admitted].sum())*s.clients.cycle.Seconds()), seconds),
		}
		shown.Since, _ = one.run.shown(s.end)
		l.Clients = append(l.Clients, shown)
	}
}

// before orders clients by their refusals, then their demand, and then their name.
func (c *client) before(other *client) int {
	if order := cmp.Compare(other.window[clientRefused].sum(), c.window[clientRefused].sum()); order != 0 {
		return order
	}
	if order := cmp.Compare(other.now.Demand, c.now.Demand); order != 0 {
		return order
	}
	return strings.Compare(c.name, other.name)
}

// shownTo is the name of the client for a caller. It is kept, because it may be a hash.
func (c *client) shownTo(to *shown) string {
	if to.plain {
		return c.name
	}
	if c.shownBy != to.names || c.shown == "" {
		c.shown, c.shownBy = fairshare.ShownName(c.name, to.part, to.names), to.names
	}
	return c.shown
}

func (s *sampler) showThrottle(l *admin.Live) {
	now := &s.throttled
	if !now.on {
		return
	}
	t := &admin.LiveThrottle{
		Mode: now.mode.String(), InFlight: now.load.InFlight, Concurrency: now.load.Limit, Advised: now.load.Found, Hung: now.stats.Hung,
		Queued: map[string]int{}, Refused: map[string]float64{}, Reasons: map[string]float64{},
	}
	for class, queued := range now.load.Queued {
		name := throttle.Class(class).String()
		t.Queued[name] = queued
		t.Refused[name] = s.rate(s.totals.throttle.refused[class])
	}
	for i, reason := range s.totals.throttle.reasons {
		t.Reasons[throttleReason(i)] = s.rate(reason)
	}
	if waits := s.totals.throttle.waited.window.sum(); waits > 0 {
		t.MeanWait = per(s.totals.throttle.waitMillis.window.sum(), int64(waits)) / 1000
	}
	l.Throttle = t
}

func (s *sampler) showStores(l *admin.Live) {
	seconds := s.seconds()
	for _, one := range s.nodes[:min(len(s.nodes), maxStores)] {
		shown := admin.LiveStore{
			Address: one.now.Name, State: one.now.State.String(),
			Calls: one.window[nodeCalls].rate(seconds), Failed: one.window[nodeFailed].rate(seconds), LastError: one.now.LastFailure.Text,
		}
		if at := one.now.LastFailure.At; !at.IsZero() {
			at = at.UTC()
			shown.LastErrorAt = &at
		}
		l.Stores = append(l.Stores, shown)
	}
}
