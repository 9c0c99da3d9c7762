package guard

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Mode says whether a rule's decisions are acted on.
type Mode uint8

const (
	// Enforce acts on them.
	Enforce Mode = iota
	// Shadow decides and reports, and refuses nothing.
	Shadow
	// Off does not look at the rule at all.
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
	// FallbackDeny refuses.
	FallbackDeny Fallback = iota
	// FallbackAllow lets pass.
	FallbackAllow
	// FallbackLocal counts in Config.Local, against this instance's part of each limit:
	// see LocalPolicy, and Config.LocalShare.
	FallbackLocal
)

// fallbackNames holds the words of configurations, in the order of the constants.
var fallbackNames = [...]string{"deny", "allow", "local"}

// String gives the word that configurations use.
func (f Fallback) String() string { return fallbackNames[min(int(f), len(fallbackNames)-1)] }

// Fallbacks lists every fallback, in the order of the constants.
func Fallbacks() []Fallback { return []Fallback{FallbackDeny, FallbackAllow, FallbackLocal} }

// Rule is a rule of a guard: whom it counts, against which limits, and what
// happens on excess.
type Rule struct {
	rule.Rule

	// Policies are the rule's limits; a request must pass all of them. No two have
	// the same period.
	Policies []headgate.Policy
	// Overrides are the limits of single values of the key's first part.
	Overrides []Override
	// Cost is what a request of unstated cost takes; 0 counts as 1.
	Cost int64
	// CostHeader names the header in which a request states its cost for this rule;
	// "" is none. A request without it takes Cost.
	CostHeader string
	// MaxCost bounds what a request may state; 0 is headgate.MaxUnits.
	MaxCost int64
	// Soft is the part of a limit, in percent, above which a request passes with the
	// reason SoftLimit; 0 is none.
	Soft int
	// Exceed says what happens to a request over the limit.
	Exceed Exceed
	// Ban refuses a key for some time that made too many attempts; the zero Ban never does.
	Ban      Ban
	Mode     Mode
	Fallback Fallback
}

// Override gives one value of the first part of a rule's key limits of its own.
type Override struct {
	// Value is the value as a request has it; an IP address for the parts that are addresses.
	Value string
	// Policies take the place of the rule's.
	Policies []headgate.Policy
}

// Action is what happens to a request over the limit.
type Action uint8

const (
	// Reject refuses it.
	Reject Action = iota
	// Delay lets it wait for a departure, if that lies within MaxWait and fewer than
	// MaxWaiters wait; else it is refused.
	Delay
	// Redirect refuses it and names another place.
	Redirect
	// Degrade lets it pass, marked so that the service answers with less.
	Degrade
)

// actionNames holds the words of configurations, in the order of the constants.
var actionNames = [...]string{"reject", "delay", "redirect", "degrade"}

// String gives the word that configurations use.
func (a Action) String() string { return actionNames[min(int(a), len(actionNames)-1)] }

// Actions lists every action, in the order of the constants.
func Actions() []Action { return []Action{Reject, Delay, Redirect, Degrade} }

// Exceed says what happens to a request over the limit. The zero Exceed rejects.
type Exceed struct {
	Action Action
	// Status is the HTTP status of a refusal: 0 is 429, and 302 for Redirect.
	Status int
	// MaxWait is how long Delay lets a request wait.
	MaxWait time.Duration
	// MaxWaiters bounds how many requests wait for the rule, all keys together; 0 is
	// DefaultMaxWaiters. It bounds those in the queues of a leaky_bucket too.
	MaxWaiters int
	// Location is where Redirect sends to. In it {path} stands for the request's
	// path, escaped.
	Location string
	// Header and Value mark what Degrade lets pass, to the service. Header is canonical.
	Header, Value string
	// Hard is the limit above which Degrade refuses after all; its zero Per is none.
	Hard headgate.Policy
}

// DefaultMaxWaiters bounds the requests that wait for one rule. Each holds a
// connection and some kilobytes.
const DefaultMaxWaiters = 10_000

// Ban refuses a key that made more than After.Count attempts within After.Per,
// counted from its first, until the end of that time and For beyond it.
type Ban struct {
	// After says how many attempts; its zero Per is the rule's first limit.
	After headgate.Limit
	// For is how long the ban lasts beyond that; 0 is no ban at all.
	For time.Duration
}
