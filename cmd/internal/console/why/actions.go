package why

import (
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/rule"
)

const program = "headgate ctl "

// banActions are commands about a ban.
func (e *explanation) banActions(r *guard.Result, entry *guard.BanEntry) (all []admin.WhyAction) {
	all = append(all, admin.WhyAction{Text: "lift the ban", Command: program + "bans lift " + quote(entry.ID)})
	if key, named := e.keyArgs(r); named {
		all = append(all, admin.WhyAction{Text: "see the ban and the counters of the key", Command: program + "key get " + key})
	}
	return append(all, shadowAction(r))
}

// ruleActions are commands about a rule that refuses or delays.
func (e *explanation) ruleActions(r *guard.Result, customer *admin.WhyPlan) (all []admin.WhyAction) {
	if r.Stage != "" || r.Decision.Reason == headgate.KeyMissing {
		return nil
	}
	if customer != nil {
		name := quote(customer.Name)
		return append(all,
			admin.WhyAction{Text: "see what the customer has used", Command: program + "quota usage " + name},
			admin.WhyAction{
				Text: "give back what the customer has used", Command: program + "quota reset " + name + " " + quote(r.Rule.Quota),
			},
			admin.WhyAction{Text: "give the customer another plan", Command: program + "quota plan " + name + " PLAN"},
			shadowAction(r))
	}
	if key, named := e.keyArgs(r); named && r.Rule.Lease.Resource == "" {
		all = append(all,
			admin.WhyAction{Text: "see the counters of the key", Command: program + "key get " + key},
			admin.WhyAction{Text: "give back what the key has used", Command: program + "key reset " + key})
	}
	if r.Rule.Lease.Resource != "" {
		all = append(all, admin.WhyAction{Text: "see the leases of the resource", Command: program + "leases " + quote(e.Lease(r.Rule))})
	}
	if r.Enforced() {
		all = append(all, admin.WhyAction{Text: "read the rule, to raise its limit", Command: program + "rule get " + quote(r.Rule.Name)})
	}
	return append(all, shadowAction(r))
}

func (e *explanation) shareActions(r *guard.Result) []admin.WhyAction {
	return []admin.WhyAction{{Text: "see the shares of all clients", Command: program + "shares"}, shadowAction(r)}
}

func (e *explanation) throttleActions(r *guard.Result) []admin.WhyAction {
	return []admin.WhyAction{{Text: "see the load and the queue", Command: program + "throttle"}, shadowAction(r)}
}

// shadowAction changes the mode of a rule or a stage for half an hour: to the other one.
func shadowAction(r *guard.Result) admin.WhyAction {
	name := r.Rule.Name
	switch r.Stage {
	case guard.FairShareName:
		name = guard.FairShareName
	case throttler.Name:
		name = throttler.Name
	}
	if r.Enforced() {
		return admin.WhyAction{Text: "let it refuse nothing for 30 minutes", Command: program + "mode shadow " + quote(name) + " --for 30m"}
	}
	return admin.WhyAction{Text: "enforce it", Command: program + "mode enforce " + quote(name)}
}

// keyArgs names the key of a result for headgate ctl key. named is false for a key that these commands cannot name.
func (e *explanation) keyArgs(r *guard.Result) (text string, named bool) {
	if r.InTree() || r.Rule.Quota != "" {
		return "", false
	}
	words := []string{quote(r.Rule.Name)}
	seen := e.Seen()
	for _, p := range r.Rule.Key {
		if word := p.Word(); word == "all" || word == "none" {
			continue
		}
		one := rule.Rule{Name: "x", Key: []rule.Part{p}}
		_, value, found := strings.Cut(strings.TrimPrefix(one.KeyText(seen), "x "+p.String()), "=")
		if !found {
			return "", false
		}
		if plain, err := strconv.Unquote(value); err == nil && isPlain(plain) {
			value = plain
		}
		words = append(words, quote(value))
	}
	return strings.Join(words, " "), true
}

// isPlain reports whether a value can be written without quotation marks.
func isPlain(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@/-") == ""
}

// quote writes a word for a shell.
func quote(word string) string {
	if isPlain(strings.ReplaceAll(word, ":", "")) && !strings.HasPrefix(word, "-") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
