package guard

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/refusal"
	"github.com/headgate/headgate/rule"
)

// Mode says whether the decisions of a rule take effect.
type Mode uint8

const (
	// Enforce applies the decisions.
	Enforce Mode = iota
	// Shadow decides and reports, and refuses nothing.
	Shadow
	// Off skips the rule.
	Off
)

// String gives the word that configurations use.
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Shadow:
		return "shadow"
	default:
		return "off"
	}
}

// Fallback says how a rule answers when its store cannot.
type Fallback uint8

const (
	// FallbackDeny refuses requests.
	FallbackDeny Fallback = iota
	// FallbackAllow allows requests, but for those that cost more than the limit ever admits.
	FallbackAllow
	// FallbackLocal counts in Config.Local, against this instance's part of each limit. See
	// LocalPolicy and Config.LocalShare.
	FallbackLocal
	// FallbackError leaves the decision to the client of a decision server, which answers that the
	// request could not be decided. The verdict is Deny, and elsewhere it is the same as FallbackDeny.
	FallbackError
)

// fallbackNames has the words of configurations, in the order of the constants.
var fallbackNames = [...]string{"deny", "allow", "local", "error"}

// String gives the word that configurations use.
func (f Fallback) String() string { return fallbackNames[min(int(f), len(fallbackNames)-1)] }

// Fallbacks lists the fallbacks, in the order of the constants.
func Fallbacks() []Fallback {
	return []Fallback{FallbackDeny, FallbackAllow, FallbackLocal, FallbackError}
}

// OnSpent is what happens to an answer whose real cost exceeds the units that are left.
type OnSpent uint8

const (
	// FinishAnswer lets the answer pass. What it costs is charged at its end.
	FinishAnswer OnSpent = iota
	// StopAnswer reserves units in steps while the events of a stream pass. When a step is refused, the stream ends after a whole
	// event, with an error event of the API, and the call of the service is ended. Other answers pass.
	StopAnswer
)

// onSpentNames has the words of configurations, in the order of the constants.
var onSpentNames = [...]string{"finish", "stop"}

// String gives the word that configurations use.
func (o OnSpent) String() string { return onSpentNames[min(int(o), len(onSpentNames)-1)] }

// OnSpents lists every OnSpent, in the order of the constants.
func OnSpents() []OnSpent { return []OnSpent{FinishAnswer, StopAnswer} }

// Rule is a rule of a guard: its key, its limits, and the action on a request over the limit.
type Rule struct {
	rule.Rule

	// Group makes rules alternatives: of the rules with one Group that match a request, the first in Config.Rules decides, and
	// the others do as if they did not match. A rule that is Off takes no part. A rule in Shadow does not take the place of an
	// enforced one: it decides beside it, unless a rule before it decides. "" is no group. A name is written like that of a rule.
	Group string
	// Policies are the rule's limits. A request must pass all of them. No two have the same
	// period.
	Policies []headgate.Policy
	// LimitsFrom lets requests state the limit. The zero LimitsFrom does not.
	LimitsFrom LimitsFrom
	// Lease is the limit in place of Policies; the zero Lease is none.
	Lease Lease
	// Calendar says where the windows of limits with a calendar period begin, such as 200/month.
	// calendar.Default has the defaults of the configuration.
	Calendar Calendar
	// Overrides are special limits for values of the key's first part. An exact value has precedence over a pattern, a long network
	// over a short one, and a pattern over later ones.
	Overrides []Override
	// Cost is the cost of a request that states none; 0 counts as 1.
	Cost int64
	// CostHeader names the header in which a request states its cost for this rule. Without the
	// header, the request has Cost. An empty name means that requests cannot state a cost.
	CostHeader string
	// MaxCost bounds the cost that a request may state; 0 is headgate.MaxUnits.
	MaxCost int64
	// Soft is the part of a limit, in percent, above which a request passes with the reason
	// SoftLimit. 0 means no soft limit.
	Soft int
	// Count lists the HTTP statuses of answers whose requests stay counted. The units of other
	// requests are returned at their end. An empty list counts every request.
	Count []int
	// Settle names the header or trailer in which the service states the real cost of a request,
	// in canonical spelling. The units that the request took are an estimate then. "" keeps them.
	Settle string
	// Bytes are the bodies whose bytes are the real cost of a request, in place of Settle: those that have passed when the request
	// ends. The units that the request took before are an estimate. 0 counts no bytes.
	Bytes Bytes
	// SettleBody says where the answer states the real cost of a request: in place of Settle and Bytes. nil is nowhere.
	SettleBody *Settle
	// Estimate is the cost before the answer, with SettleBody; nil takes Cost.
	Estimate *Estimate
	// MaxBody is the most that is read of a request's body before the decision, in bytes. Rules that need facts of the body have it.
	MaxBody int64
	// OnSpent says what happens to an answer whose key runs out of units while it passes, with SettleBody.
	OnSpent OnSpent
	// Overdraft is what a key may owe after a settlement, in percent of each limit. Later requests pay the debt before they
	// pass: see headgate.Charge. 0 is DefaultOverdraft, or UnlimitedOverdraft with SettleBody. NoOverdraft lets no debt arise.
	// Limits with CountRejected have none.
	Overdraft int64
	// Announced takes the announced length of the request's body as the estimate, at least 1. It needs RequestBytes or Settle.
	Announced bool
	// InFlight bounds the requests of a key between Admit and Done, waits included. 0 is no bound.
	// With a bound, Policies may be empty.
	InFlight int64
	// InFlightTTL is the time after which a shared store frees the slots of a process that has
	// crashed; 0 is DefaultInFlightTTL.
	InFlightTTL time.Duration
	// Exceed is the action on a request over the limit.
	Exceed Exceed
	// Ban refuses, for some time, a key with too many attempts. The zero Ban never does.
	Ban      Ban
	Mode     Mode
	Fallback Fallback
	// Switch says that Mode was switched for some time; nil means that it was not.
	Switch *Switch
	// TrialOf names the rule for which this rule tries other limits; "" is no trial. A trial is in Shadow, follows its rule in
	// Config.Rules, perhaps after other trials of it, and has its match and key. It decides on the requests on which its rule decides, and
	// counts apart. Reports count it, and neither log its refusals nor list its keys. Answer.Shadowed and Answer.Matched leave it out.
	TrialOf string
}

// AllPolicies lists the policies of the rule, its overrides, its hard limit, and the highest that requests may state.
func (r *Rule) AllPolicies() []headgate.Policy {
	all := slices.Clone(r.Policies)
	for i := range r.Overrides {
		all = append(all, r.Overrides[i].Policies...)
	}
	for _, list := range r.StatedAtMost() {
		all = append(all, list...)
	}
	if r.Exceed.Hard.Limit.HasPeriod() {
		all = append(all, r.Exceed.Hard)
	}
	return all
}

// Action is the treatment of a request over the limit.
type Action uint8

const (
	// Reject refuses the request.
	Reject Action = iota
	// Delay makes the request wait for a departure within MaxWait, while fewer than MaxWaiters
	// requests wait. Other requests are refused.
	Delay
	// Redirect refuses the request and names another location.
	Redirect
	// Degrade lets the request pass, with a mark for the service, which answers with less.
	Degrade
	// Drop refuses the request and closes its connection, or its stream of HTTP/2, without an answer. A front that cannot do so
	// answers as for Reject: gRPC in a Go program, and every decision server.
	Drop
)

// actionNames has the words of configurations, in the order of the constants.
var actionNames = [...]string{"reject", "delay", "redirect", "degrade", "drop"}

// String gives the word that configurations use.
func (a Action) String() string { return actionNames[min(int(a), len(actionNames)-1)] }

// Actions lists every action, in the order of the constants.
func Actions() []Action { return []Action{Reject, Delay, Redirect, Degrade, Drop} }

// Exceed is the action on a request over the limit, with its settings. The zero Exceed rejects.
type Exceed struct {
	Action Action
	// Status is the HTTP status of a refusal. 0 means 429, and 302 for Redirect.
	Status int
	// MaxWait is the longest wait under Delay.
	MaxWait time.Duration
	// MaxWaiters bounds the requests that wait for the rule, over all keys; 0 is
	// DefaultMaxWaiters. The bound includes the queues of a leaky_bucket.
	MaxWaiters int
	// Location is the target of Redirect. {path} in it stands for the request's escaped path.
	Location string
	// Header and Value are the mark that Degrade adds for the service. Header is canonical.
	Header, Value string
	// Response is the body and the header fields of a refusal over HTTP. nil is the problem document. gRPC and Connect calls keep
	// the errors of their protocols.
	Response *refusal.Template
	// Hard is the limit above which Degrade refuses. A zero Per means no hard limit.
	Hard headgate.Policy
}

// DefaultMaxWaiters bounds the requests that wait for one rule. Each waiting request holds a
// connection and some kilobytes.
const DefaultMaxWaiters = 10_000

// Ban refuses a key with more than After.Count attempts within After.Per, counted from the
// first attempt. The ban lasts until For after the end of that period. In a rule with Count, the ban counts answers with these statuses
// in place of attempts, and begins when a request with the last of After.Count answers ends: see Rule.BansAnswers.
type Ban struct {
	// After is the number of attempts and their period. A zero Per means the rule's first limit.
	After headgate.Limit
	// For is the length of the ban after the period; 0 means no ban.
	For time.Duration
	// Growth makes each further ban of a key that many times as long as the one before, from For up to Most: 2 to MostGrowth. 0 keeps
	// the length. It needs Count. Guard.Lift and Guard.Unban also forget the earlier bans of the key.
	Growth int64
	Most   time.Duration
	// Forget is the time after the end of a ban from which the next one lasts For again. A key is remembered up to the period of
	// After longer.
	Forget time.Duration
}
