package explain

import (
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// writeCustomer names the customer of a rule with a quota, its plan and its entry.
func (e *explanation) writeCustomer(b *strings.Builder, r *guard.Result) {
	if r.Rule.Quota == "" {
		return
	}
	name, plan, entry := e.Customer(r.Rule)
	text := "no entry"
	if entry != nil {
		text = "an entry"
		if len(entry.Quotas) > 0 {
			text += " with limits of its own"
		}
	}
	linef(b, "customer", "%s, plan %s; %s", strconv.Quote(name), plan, text)
	if entry != nil && entry.Note != "" {
		linef(b, "note", "%s", entry.Note)
	}
	if entry != nil && entry.Raise != nil {
		state := "applies until "
		if r.Decision.At >= entry.Raise.Until {
			state = "ended at "
		}
		linef(b, "raise", "%s%s", state, entry.Raise.Until.Time().Format(time.RFC3339))
	}
}

// Customer names the customer of a rule with a quota, its plan, and its entry; nil without one.
func (r *Reading) Customer(of *guard.Rule) (name, plan string, entry *guard.Customer) {
	key, from, _ := of.AppendCustomerKey(nil, r.Seen())
	name, plan = string(key[from:]), r.Config.DefaultPlan
	if entry = entryOf(r.Config, name); entry != nil && entry.Plan != "" {
		plan = entry.Plan
	}
	return name, plan, entry
}

// entryOf finds the entry of a customer; nil without one.
func entryOf(c *config.Config, name string) *guard.Customer {
	for i := range c.Customers {
		if c.Customers[i].Name == name {
			return &c.Customers[i]
		}
	}
	return nil
}
