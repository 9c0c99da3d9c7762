package ctl

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/pace/etcd"
)

// limitText formats a limit with its balance.
func limitText(l etcd.Limit) string {
	return fmt.Sprintf("%s (%s)", headgate.Limit{Count: l.Count, Per: l.Per}, terminal.Printable(string(balanceOf(l))))
}

// balanceOf returns the balance of a limit. The default is even.
func balanceOf(l etcd.Limit) etcd.Balance { return cmp.Or(l.Balance, etcd.Even) }

// entryLimit formats an entry's limit with its revision.
func entryLimit(e *etcd.Entry) string {
	switch {
	case e.Revision == 0:
		return "no limit"
	case !valid(e):
		return fmt.Sprintf("no valid limit, revision %d", e.Revision)
	}
	return fmt.Sprintf("%s, revision %d", limitText(e.Limit), e.Revision)
}

// valid reports whether an entry has a limit that could be parsed.
func valid(e *etcd.Entry) bool { return e.Revision != 0 && e.Limit.Per > 0 }

// planLimit formats the limit that a plan divides.
func planLimit(p *etcd.PlanInfo) string { return headgate.Limit{Count: p.Limit, Per: p.Per}.String() }

func planned(p *etcd.PlanInfo, l etcd.Limit) bool {
	return p != nil && p.Limit == l.Count && p.Per == l.Per
}

// clock formats a time in UTC, because windows are aligned to UTC. A time more than 12 hours
// away has its date.
func clock(t, now time.Time) string {
	t = t.UTC()
	if d := t.Sub(now).Abs(); d < 12*time.Hour {
		return t.Format("15:04:05.999Z")
	}
	return t.Format("2006-01-02T15:04:05Z")
}

// inForce says which limit is in force, and from when.
func inForce(e *etcd.Entry, now time.Time) string {
	p := e.Plan
	if p == nil {
		return "not in force"
	}
	text := "in force since " + clock(p.From, now)
	if ahead := p.From.Sub(now); ahead > 0 {
		text = fmt.Sprintf("in force from %s (in %s)", clock(p.From, now), roughly(ahead))
	}
	if !valid(e) || !planned(p, e.Limit) {
		text = planLimit(p) + " is " + text
	}
	return text
}

// roughly rounds a duration for display.
func roughly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// instances formats the number of running instances, and the number in the plan if it differs.
func instances(e *etcd.Entry) string {
	if e.Plan != nil && e.Plan.Instances != len(e.Members) {
		return fmt.Sprintf("%d (%d in the plan)", len(e.Members), e.Plan.Instances)
	}
	return strconv.Itoa(len(e.Members))
}

// active reports whether a brake has not expired. etcd removes its key a little later.
func active(b *etcd.BrakeInfo, now time.Time) bool { return b != nil && b.Until.After(now) }

// brakeText formats the percentage of a brake, its end and its reason.
func brakeText(b *etcd.BrakeInfo, now time.Time) string {
	if !active(b, now) {
		return "-"
	}
	text := fmt.Sprintf("to %d%% until %s", b.Percent, clock(b.Until, now))
	if b.Reason != "" {
		text += ": " + terminal.Printable(b.Reason)
	}
	if b.By != "" {
		text += " (by " + terminal.Printable(b.By) + ")"
	}
	return text
}

// writeLimits prints a table with a line for each provider.
func writeLimits(out io.Writer, all []etcd.Entry, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "no provider has a limit: set one, like headgate ctl limit set mail 1000/s")
		return err
	}
	rows := [][]string{{"PROVIDER", "LIMIT", "BALANCE", "REVISION", "IN FORCE", "INSTANCES", "BRAKE"}}
	for i := range all {
		e := &all[i]
		limit, balance := "-", "-"
		switch {
		case valid(e):
			limit, balance = headgate.Limit{Count: e.Limit.Count, Per: e.Limit.Per}.String(), terminal.Printable(string(balanceOf(e.Limit)))
		case e.Revision != 0:
			limit = "not valid"
		}
		rows = append(rows, []string{
			terminal.Printable(e.Provider), limit, balance, strconv.FormatInt(e.Revision, 10), forceCell(e, now),
			instances(e), brakeText(e.Brake, now),
		})
	}
	_, err := fmt.Fprintln(out, strings.Join(terminal.Aligned(rows, 0), "\n"))
	return err
}

// forceCell is inForce in the short form of a table.
func forceCell(e *etcd.Entry, now time.Time) string {
	switch p := e.Plan; {
	case p == nil:
		return "no"
	case !valid(e) || !planned(p, e.Limit):
		return planLimit(p) + " " + since(p.From, now)
	default:
		return since(p.From, now)
	}
}

func since(t, now time.Time) string {
	if t.After(now) {
		return "from " + clock(t, now)
	}
	return "since " + clock(t, now)
}

// writeProvider prints a provider with the instances that share its limit.
func writeProvider(out io.Writer, e *etcd.Entry, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "%s: %s\n%s; instances: %s\n", terminal.Printable(e.Provider), entryLimit(e), inForce(e, now), instances(e))
	if active(e.Brake, now) {
		terminal.Rowf(w, "braked %s\n", brakeText(e.Brake, now))
	}
	for _, fault := range e.Faults {
		terminal.Rowf(w, "not valid: %s\n", faultText(fault))
	}
	if len(e.Members) == 0 {
		terminal.Rowf(w, "no instance is running: the limit takes effect when an instance starts\n")
		return w.Flush()
	}
	terminal.Rowf(w, "\nINDEX\tPART\tDEMAND\tSEEN\tID\n")
	for _, m := range byIndex(e.Members) {
		terminal.Rowf(w, "%s\t%s\t%d\t%s\t%s\n", indexText(m.Index), partText(e, m.Index), m.Demand,
			seenText(m.Seen, now), terminal.Printable(m.ID))
	}
	return w.Flush()
}

// maxFault bounds the printed text of a fault, in columns.
const maxFault = 300

// faultText formats a fault. The fault may quote an invalid value, which is escaped here.
func faultText(fault string) string {
	return terminal.Cut(terminal.Printable(strings.TrimPrefix(fault, "pace/etcd: ")), maxFault)
}

// byIndex sorts members by their index in the plan. Members without an index are last.
func byIndex(members []etcd.Member) []etcd.Member {
	members = slices.Clone(members)
	sorting.StableFunc(members, func(a, b etcd.Member) int {
		if (a.Index < 0) != (b.Index < 0) {
			return cmp.Compare(b.Index, a.Index)
		}
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
	})
	return members
}

func indexText(index int) string {
	if index < 0 {
		return "joins"
	}
	return strconv.Itoa(index)
}

// partText formats the units that a member may use in one window. It has two numbers when
// some windows have one unit more.
func partText(e *etcd.Entry, index int) string {
	switch {
	case index < 0:
		return "0"
	case e.Plan == nil || balanceOf(e.Limit) != etcd.Even:
		return "-"
	}
	plan, err := schedule.Even(e.Plan.Limit, e.Plan.Per, e.Plan.Instances, index)
	if err != nil {
		return "-" // Instances ignore an invalid plan.
	}
	least := plan.Limit / int64(plan.Instances)
	if plan.Limit%int64(plan.Instances) == 0 {
		return strconv.FormatInt(least, 10)
	}
	return fmt.Sprintf("%d-%d", least, least+1)
}

// seenText formats the time since a member's last write, by the member's clock.
func seenText(t, now time.Time) string {
	switch ago := roughly(now.Sub(t)); {
	case t.IsZero():
		return "-"
	case ago < 0:
		return fmt.Sprintf("%s ahead", -ago)
	default:
		return fmt.Sprintf("%s ago", ago)
	}
}
