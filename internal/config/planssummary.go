package config

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
)

// customerBytes is the memory of one customer beside its name, with a limit for each ten customers. A
// test of package guard measures it.
const customerBytes = 300

// writePlans writes the plans, and the number of customers with their memory.
func (c *Config) writePlans(b *strings.Builder) {
	if len(c.Plans) == 0 {
		return
	}
	names, raised := 0, 0
	for i := range c.Customers {
		names += len(c.Customers[i].Name)
		if c.Customers[i].Raise != nil {
			raised++
		}
	}
	fmt.Fprintf(b, "\n%s, default %s; %s with entries, %d with a raise; at most %s\n", field.Counted(len(c.Plans), "plan"), c.DefaultPlan,
		field.Counted(len(c.Customers), "customer"), raised, formatRounded(int64(names+len(c.Customers)*customerBytes)))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(t, "PLAN\tMODE\tAFTER\tQUOTA\tALGORITHM\tLIMIT\tSOFT\tHARD\n")
	for i := range c.Plans {
		p := &c.Plans[i]
		for _, q := range p.Quotas {
			for j := range q.Limits {
				l := &q.Limits[j]
				_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Mode, p.After, q.Quota, l.Policy.Algorithm,
					field.FormatLimit(l.Policy), orNoPercent(l.Soft), orNoNumber(l.Hard))
			}
		}
		if len(p.Quotas) == 0 {
			_, _ = fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\t-\n", p.Name, p.Mode)
		}
	}
	_ = t.Flush()
}

func orNoPercent(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n, "%")
}

func orNoNumber(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// mostAtOnce gives the fewest units that any of the limits ever admits at once, and that limit.
func mostAtOnce(all []guard.QuotaLimit) (least int64, shown string) {
	for i := range all {
		l := &all[i]
		if most := max(limit.Room(l.Policy), l.Hard); least == 0 || most < least {
			least, shown = most, l.Policy.Limit.String()
		}
	}
	return least, shown
}
