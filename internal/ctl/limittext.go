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
	"github.com/headgate/headgate/pace/etcd"
	"github.com/headgate/headgate/pace/schedule"
)

// limitText writes a limit and how it is divided.
func limitText(l etcd.Limit) string {
	return fmt.Sprintf("%s (%s)", headgate.Limit{Count: l.Count, Per: l.Per}, printable(string(balanceOf(l))))
}

// balanceOf gives the word for how a limit is divided.
func balanceOf(l etcd.Limit) etcd.Balance { return cmp.Or(l.Balance, etcd.Even) }

// entryLimit writes an entry's limit with its revision.
func entryLimit(e *etcd.Entry) string {
	switch {
	case e.Revision == 0:
		return "no limit"
	case !valid(e):
		return fmt.Sprintf("no valid limit, revision %d", e.Revision)
	}
	return fmt.Sprintf("%s, revision %d", limitText(e.Limit), e.Revision)
}

// valid reports whether an entry's limit is one: what is not counts as not written.
func valid(e *etcd.Entry) bool { return e.Revision != 0 && e.Limit.Per > 0 }

// planLimit writes the limit that a plan divides.
func planLimit(p *etcd.PlanInfo) string { return headgate.Limit{Count: p.Limit, Per: p.Per}.String() }

// planned reports whether a plan divides the limit.
func planned(p *etcd.PlanInfo, l etcd.Limit) bool {
	return p != nil && p.Limit == l.Count && p.Per == l.Per
}

// clock writes a time of this day's as an hour, and others with their date: in UTC, as
// windows go.
func clock(t, now time.Time) string {
	t = t.UTC()
	if d := t.Sub(now).Abs(); d < 12*time.Hour {
		return t.Format("15:04:05.999Z")
	}
	return t.Format("2006-01-02T15:04:05Z")
}

// inForce says which limit is in force, and since when or from when on.
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

// roughly rounds a time for people.
func roughly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// counted writes a number and what it is of.
func counted(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return strconv.Itoa(n) + " " + of + "s"
}

// instances says how many instances live, and how many the plan has when these are others.
func instances(e *etcd.Entry) string {
	if e.Plan != nil && e.Plan.Instances != len(e.Members) {
		return fmt.Sprintf("%d (%d in the plan)", len(e.Members), e.Plan.Instances)
	}
	return strconv.Itoa(len(e.Members))
}

// holds reports whether a brake is not over: its key goes a little later.
func holds(b *etcd.BrakeInfo, now time.Time) bool { return b != nil && b.Until.After(now) }

// brakeText says to what all instances have slowed down, and until when.
func brakeText(b *etcd.BrakeInfo, now time.Time) string {
	if !holds(b, now) {
		return "-"
	}
	text := fmt.Sprintf("to %d%% until %s", b.Percent, clock(b.Until, now))
	if b.Reason != "" {
		text += ": " + printable(b.Reason)
	}
	if b.By != "" {
		text += " (by " + printable(b.By) + ")"
	}
	return text
}

// writeLimits prints a line for each provider.
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
			limit, balance = headgate.Limit{Count: e.Limit.Count, Per: e.Limit.Per}.String(), printable(string(balanceOf(e.Limit)))
		case e.Revision != 0:
			limit = "not valid"
		}
		rows = append(rows, []string{
			printable(e.Provider), limit, balance, strconv.FormatInt(e.Revision, 10), forceCell(e, now),
			instances(e), brakeText(e.Brake, now),
		})
	}
	_, err := fmt.Fprintln(out, strings.Join(aligned(rows, 0), "\n"))
	return err
}

// forceCell is inForce for a table, whose head says the rest.
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

// writeProvider prints a provider with those who share its limit.
func writeProvider(out io.Writer, e *etcd.Entry, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rowf(w, "%s: %s\n%s; instances: %s\n", printable(e.Provider), entryLimit(e), inForce(e, now), instances(e))
	if holds(e.Brake, now) {
		rowf(w, "braked %s\n", brakeText(e.Brake, now))
	}
	for _, fault := range e.Faults {
		rowf(w, "not valid: %s\n", faultText(fault))
	}
	if len(e.Members) == 0 {
		rowf(w, "no instance lives: a limit is in force when one does\n")
		return w.Flush()
	}
	rowf(w, "\nINDEX\tPART\tDEMAND\tSEEN\tID\n")
	for _, m := range byIndex(e.Members) {
		rowf(w, "%s\t%s\t%d\t%s\t%s\n", indexText(m.Index), partText(e, m.Index), m.Demand, seenText(m.Seen, now), printable(m.ID))
	}
	return w.Flush()
}

// maxFault bounds what is shown of a fault, in columns.
const maxFault = 300

// faultText writes a fault, which may repeat a part of what is not valid.
func faultText(fault string) string {
	return cut(printable(strings.TrimPrefix(fault, "pace/etcd: ")), maxFault)
}

// byIndex orders members as the plan does; those that are not in it yet come last.
func byIndex(members []etcd.Member) []etcd.Member {
	members = slices.Clone(members)
	slices.SortStableFunc(members, func(a, b etcd.Member) int {
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

// partText gives what a member may use of a window: two numbers when it has one unit more
// in some windows than in others.
func partText(e *etcd.Entry, index int) string {
	switch {
	case index < 0:
		return "0"
	case e.Plan == nil || balanceOf(e.Limit) != etcd.Even:
		return "-"
	}
	plan, err := schedule.Even(e.Plan.Limit, e.Plan.Per, e.Plan.Instances, index)
	if err != nil {
		return "-" // Nobody follows such a plan.
	}
	least := plan.Limit / int64(plan.Instances)
	if plan.Limit%int64(plan.Instances) == 0 {
		return strconv.FormatInt(least, 10)
	}
	return fmt.Sprintf("%d-%d", least, least+1)
}

// seenText says how long ago a member wrote last, by its own clock.
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
