package guard

import (
	"github.com/headgate/headgate"
)

// After is what follows the included units of a plan.
type After uint8

const (
	// AfterReject refuses requests.
	AfterReject After = iota
	// AfterDegrade lets requests pass with Plan.Header, up to QuotaLimit.Hard.
	AfterDegrade
	// AfterMeter lets requests pass with the reason Metered, up to QuotaLimit.Hard.
	AfterMeter
)

// afterNames has the words of configurations, in the order of the constants.
var afterNames = [...]string{"reject", "degrade", "meter"}

// String gives the word that configurations use.
func (a After) String() string { return afterNames[min(int(a), len(afterNames)-1)] }

// Afters lists every After, in the order of the constants.
func Afters() []After { return []After{AfterReject, AfterDegrade, AfterMeter} }

// QuotaLimit is one limit of a quota.
type QuotaLimit struct {
	// Policy is the limit. Its Count is the number of included units. LeakyBucket, MaxWait, Hold and
	// CountRejected are not possible.
	Policy headgate.Policy
	// Soft is the part of the included units, in percent, above which a request is AboveSoft. 0 means
	// no soft limit.
	Soft int
	// Hard is the number of units in a period above which requests are refused, at least the included
	// units. 0 means that requests above the included units are refused. Only FixedWindow can have it.
	// A plan with AfterReject does not use it.
	Hard int64
}

// QuotaLimits are the limits of one quota. A request must pass all of them. No two have the same period.
type QuotaLimits struct {
	Quota  string
	Limits []QuotaLimit
}

// Plan is what many customers have.
type Plan struct {
	Name string
	// Missing says that the plan is not known yet. Requests of its customers under a rule with a quota get the reason
	// PlanMissing, and count nothing. Such a plan has only a Name.
	Missing bool
	Mode    Mode
	// After says what follows the included units of limits with a Hard.
	After After
	// Header and Value are the mark that AfterDegrade adds for the service. Header is canonical.
	Header, Value string
	Quotas        []QuotaLimits
	// Calendar says where the windows of limits with a calendar period begin, such as 200/month.
	Calendar Calendar
}

// needsLimits reports whether customers of the plan have limits.
func (p *Plan) needsLimits() bool { return p.Mode != Off && !p.Missing }

// Customer is an entry for one customer. Customers without an entry have the default plan.
type Customer struct {
	// Name is the customer's name, as rule.CustomerName gives it.
	Name string
	// Plan is the name of a plan; "" is the default plan.
	Plan string
	// Quotas replace those of the plan.
	Quotas []QuotaLimits
	// Spending are lower hard limits that the customer has set.
	Spending []Spending
	// Raise replaces quotas for a time; nil for none.
	Raise *Raise
	// Calendar replaces that of the plan; nil keeps it.
	Calendar *Calendar
	// Note is a text for people.
	Note string
}

// Spending is a customer's own hard limit of one quota. It applies to the limits with a Hard, where it is
// lower, and never refuses included units.
type Spending struct {
	Quota string
	Hard  int64
}

// Raise are quotas that a customer has until a time, in place of all others. A Spending does not apply to
// them. The clock is that of each instance: Config.Clock.
type Raise struct {
	Quotas []QuotaLimits
	Until  headgate.Instant
}
