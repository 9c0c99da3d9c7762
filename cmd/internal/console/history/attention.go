package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/sentence"
	"github.com/headgate/headgate/internal/sorting"
)

// What is worth attention: a part of the requests, and a least number in a window.
const (
	refusedPart = 0.05
	failedPart  = 0.01
	brokenPart  = 0.2
	leastCount  = 5
	// maxAbout bounds what one component may add.
	maxAbout = 100
	// maxText bounds the bytes of a text: errors may be long.
	maxText = 300
)

// attend adds what all components and the rates say, the worst first. worst are the rules with the most trouble.
func (c *Component) attend(l *admin.Live, worst []admin.LiveRule) {
	var all []admin.Attention
	add := func(a admin.Attention) {
		if len(a.Text) > maxText {
			a.Text = strings.ToValidUTF8(a.Text[:maxText], "") + "..."
		}
		all = append(all, a)
	}
	for _, part := range c.o.Components() {
		left := maxAbout
		part.Attention(func(a admin.Attention) {
			if left--; left >= 0 {
				add(a)
			}
		})
	}
	c.attendReload(l, add)
	attendService(l, add)
	for i := range worst {
		attendRule(&worst[i], l.Window, add)
	}
	levels := admin.Levels()
	sorting.StableFunc(all, func(a, b admin.Attention) int {
		return cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level))
	})
	l.AttentionTotal = len(all)
	l.Attention = append(l.Attention, all[:min(len(all), maxAttention)]...)
}

// attendReload says what the last reload did not change.
func (c *Component) attendReload(l *admin.Live, add func(admin.Attention)) {
	for _, f := range c.o.Failures() {
		at := f.At
		add(admin.Attention{
			Level: admin.LevelFault, About: "reload", Name: f.Part, Since: &at,
			Text: fmt.Sprintf("The last reload of %s failed, and the former one stays in effect: %s", f.Part, f.Error),
		})
	}
	if n := len(l.PendingRestart); n > 0 {
		shown := l.PendingRestart[:min(n, maxLimitTexts)]
		text := strings.Join(shown, ", ")
		if n > len(shown) {
			text += fmt.Sprintf(" and %d more", n-len(shown))
		}
		add(admin.Attention{
			Level: admin.LevelNote, About: "reload", Text: "Restart the instance: only a restart changes " + text + ".",
		})
	}
}

// attendService says that the service fails, or that requests are undecided.
func attendService(l *admin.Live, add func(admin.Attention)) {
	t := &l.Totals
	enough := func(rate float64) bool { return rate*float64(l.Window) >= leastCount && t.Requests > 0 }
	if part := t.ServiceFailed / max(t.Requests, t.ServiceFailed, 1e-9); enough(t.ServiceFailed) && part >= failedPart {
		level := admin.LevelWarning
		if part >= brokenPart {
			level = admin.LevelFault
		}
		add(admin.Attention{
			Level: level, About: "service",
			Text: fmt.Sprintf("The service fails %s of the requests (%s/s). Check the service: Headgate does not cause these failures.",
				sentence.Percent(part), sentence.Rate(t.ServiceFailed)),
		})
	}
	if n := t.RefusedBy[causeNames[undecided]]; enough(n) {
		add(admin.Attention{
			Level: admin.LevelFault, About: "store",
			Text: fmt.Sprintf("%s requests/s are refused because the store or the source does not answer or is full. Check the store, or "+
				"set fallback: allow or local.", sentence.Rate(n)),
		})
	}
}

// attendRule says that a rule or a stage refuses much, or would in shadow.
func attendRule(r *admin.LiveRule, window int, add func(admin.Attention)) {
	name, about, advice := "The rule "+r.Name, "rule", ": headgate ctl top "+r.Name+" shows the keys."
	switch r.Kind {
	case "fair_share":
		name, advice = "Fair share", ": headgate ctl shares shows the clients."
	case "throttle":
		name, about = "The throttle", "throttle"
		advice = ": the service has more work than it can do. headgate ctl throttle shows the load."
	default:
		if quota := func(limit string) bool { return strings.HasPrefix(limit, "quota ") }; slices.ContainsFunc(r.Limits, quota) {
			about, advice = "quota", ": customers have used up their quota. headgate ctl usage shows what they have used."
		}
	}
	a := admin.Attention{About: about, Name: r.Name, Since: r.Since}
	all := r.Passed + r.Refused
	switch {
	case r.Refused*float64(window) >= leastCount && r.Refused >= refusedPart*all:
		a.Level = admin.LevelWarning
		a.Text = fmt.Sprintf("%s refuses %s of its requests (%s/s)%s", name, sentence.Percent(r.Refused/all),
			sentence.Rate(r.Refused), advice)
	case r.WouldRefuse > 0 && r.Refused == 0 && r.TrialOf == "":
		a.Level = admin.LevelNote
		a.Text = fmt.Sprintf("%s is in shadow and would refuse %s of its requests (%s/s)%s", name, sentence.Percent(r.WouldRefuse/all),
			sentence.Rate(r.WouldRefuse), advice)
	default:
		return
	}
	add(a)
}
