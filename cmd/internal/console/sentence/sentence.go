// Package sentence says in one or two sentences what an instance, or a fleet, does now: the page, the terminal and the API have one text.
package sentence

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// leastPart is the least part of the requests, that are refused or fail, that a sentence names.
const leastPart = 0.001

// Of describes what l does. rules are those with the most refusals, which may not be in l.
func Of(l *admin.Live, rules []admin.LiveRule) string {
	if l.Window == 0 {
		return "No second has been measured yet."
	}
	t := &l.Totals
	var all []string
	for i := range l.Attention {
		if a := &l.Attention[i]; a.Level == admin.LevelFault && a.About == "store" {
			all = append(all, "The store server "+a.Name+" is not used: fallbacks decide.")
			break
		}
	}
	if l.Throttle != nil && l.Throttle.Hung {
		all = append(all, "The service answers nothing.")
	}
	failed, refused := part(t.ServiceFailed, t.Requests), part(t.Refused, t.Requests)
	if failed >= leastPart {
		all = append(all, fmt.Sprintf("The service fails %s of %s requests/s.", Percent(failed), Rate(t.Requests)))
	}
	switch {
	case refused >= leastPart:
		all = append(all, fmt.Sprintf("Headgate refuses %s of %s requests/s%s.", Percent(refused), Rate(t.Requests), worst(l, rules)))
	case t.Requests == 0:
		all = append(all, "No requests.")
	case failed < leastPart:
		all = append(all, fmt.Sprintf("All served: %s requests/s.", Rate(t.Requests)))
	}
	if t.WouldRefuse > 0 && refused < leastPart {
		all = append(all, fmt.Sprintf("Rules in shadow would refuse %s/s.", Rate(t.WouldRefuse)))
	}
	return strings.Join(all, " ")
}

// part is a part of the requests, from 0 to 1.
func part(n, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return min(n/of, 1)
}

// worst names the rule with the most refusals.
func worst(l *admin.Live, rules []admin.LiveRule) string {
	var most *admin.LiveRule
	for i := range rules {
		if r := &rules[i]; r.Refused > 0 && (most == nil || r.Refused > most.Refused) {
			most = r
		}
	}
	if most == nil {
		return ""
	}
	subject := "rule " + most.Name
	switch most.Kind {
	case "fair_share":
		subject = "fair share"
	case "throttle":
		subject = "the throttle"
	default:
	}
	text := fmt.Sprintf(": %s refuses %s/s", subject, Rate(most.Refused))
	if most.Since != nil {
		text += ", since " + Since(l.Now.Sub(*most.Since))
	}
	return text
}

// Percent writes a part from 0 to 1: 26 %, 0.4 %. A small part is not 0 %, and a part below all is not 100 %.
func Percent(part float64) string {
	switch percent := 100 * part; {
	case percent <= 0:
		return "0 %"
	case percent < 0.1:
		return "under 0.1 %"
	case percent < 9.95:
		return strings.TrimSuffix(strconv.FormatFloat(percent, 'f', 1, 64), ".0") + " %"
	case percent < 100:
		return strconv.Itoa(min(int(percent+0.5), 99)) + " %"
	default:
		return "100 %"
	}
}

// Rate writes a number of things in a second: 0.3, 25.9, 194, 12,000.
func Rate(n float64) string {
	switch {
	case n <= 0:
		return "0"
	case n < 0.05:
		return "under 0.1"
	case n < 99.95:
		return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0")
	}
	text := strconv.FormatFloat(n, 'f', 0, 64)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Since writes for how long something goes on: 40 s, 5 min, 3 h, 2 days.
func Since(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return "1 s"
	case d < 100*time.Second:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d/day))
	}
}
