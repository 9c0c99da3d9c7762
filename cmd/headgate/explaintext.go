package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/fields"
	"github.com/headgate/headgate/rule"
)

// write tells of the last request: rule by rule, and what client and service see.
func (e *explanation) write(out io.Writer) error {
	var b strings.Builder
	e.writeRequest(&b)
	results := e.exchange.Answer.Results
	switch {
	case e.failed != nil:
	case len(results) == 0:
		e.writeNearest(&b)
	}
	for len(results) > 0 && e.failed == nil {
		n := slices.IndexFunc(results, func(r guard.Result) bool { return r.Number != results[0].Number })
		if n < 0 {
			n = len(results)
		}
		e.writeRule(&b, results[:n])
		results = results[n:]
	}
	e.writeAnswer(&b)
	if e.forward != nil {
		e.writeForward(&b)
	}
	e.writeRuns(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// linef writes a line with a word before it.
func linef(b *strings.Builder, word, format string, args ...any) {
	fmt.Fprintf(b, "  %-9s %s\n", word, fmt.Sprintf(format, args...))
}

func (e *explanation) writeRequest(b *strings.Builder) {
	r, seen := e.request, &e.exchange.Request
	fmt.Fprintf(b, "request %s %s\n", r.Method, r.RequestURI)
	if e.failed == nil && seen.Path != r.URL.Path {
		linef(b, "path", "%q, as the service will see it", seen.Path)
	}
	if r.Host != "" {
		linef(b, "host", "%s", r.Host)
	}
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		linef(b, "from", "%s", peer.Addr())
	} else {
		linef(b, "from", "a unix socket")
	}
	if r.TLS != nil {
		linef(b, "subject", "%s", r.TLS.VerifiedChains[0][0].Subject)
	}
}

// writeRule tells of one rule, which all of the results are of.
func (e *explanation) writeRule(b *strings.Builder, results []guard.Result) {
	r, req := results[0].Rule, &e.exchange.Request
	fmt.Fprintf(b, "\nrule %s", r.Name)
	if !results[0].Enforced() {
		b.WriteString(", which is in mode shadow: it reports this, and does nothing")
	}
	b.WriteByte('\n')
	shared := ""
	if results[0].Shared {
		shared = "; all requests that lack this share the key"
	}
	linef(b, "key", "%s%s", r.KeyText(req), shared)
	if value, found := overrideOf(r, req); found {
		linef(b, "override", "%s", value)
	}
	linef(b, "cost", "%s", costText(r, req))
	for i := range results {
		writeLimit(b, &results[i])
	}
	e.writeDecision(b, strictest(results), results)
}

// overrideOf gives the value for which the rule has limits of its own, if the
// request has it.
func overrideOf(r *guard.Rule, req *headgate.Request) (string, bool) {
	if len(r.Overrides) == 0 {
		return "", false
	}
	values := make([]string, len(r.Overrides))
	for i := range r.Overrides {
		values[i] = r.Overrides[i].Value
	}
	overrides, err := rule.NewOverrides(r.Key[0], values)
	if err != nil {
		return "", false // The guard has taken the same.
	}
	if i, found := overrides.Find(req); found {
		return strconv.Quote(values[i]), true
	}
	return "", false
}

func costText(r *guard.Rule, req *headgate.Request) string {
	if r.CostHeader != "" && req.Header != nil {
		if stated, found := req.Header.Lookup(r.CostHeader); found {
			return fmt.Sprintf("%q, as %s says", stated, r.CostHeader)
		}
	}
	return strconv.FormatInt(max(1, r.Cost), 10)
}

// writeLimit tells what remains of a limit, or of the attempts before a ban.
func writeLimit(b *strings.Builder, r *guard.Result) {
	d := &r.Decision
	switch {
	case r.Policy == r.Rule.Name+"-ban" && d.Reason == headgate.Banned:
		linef(b, "ban", "%s: more than %s attempts were made; it ends in %s", r.Policy, r.Limit, span(d.RetryAfter))
		return
	case r.Policy == r.Rule.Name+"-ban":
		linef(b, "ban", "%s: after more than %s attempts, for %s; %d are left", r.Policy, r.Limit, span(r.Rule.Ban.For), d.Remaining)
		return
	}
	word := "limit"
	if r.Policy == r.Rule.Name+"-hard" {
		word = "hard"
	}
	text := fmt.Sprintf("%s: %s, %s: %d of %d left", r.Policy, r.Limit, algorithmOf(r), d.Remaining, d.Limit)
	if d.ResetAfter > 0 {
		text += ", all of it in " + span(d.ResetAfter)
	}
	linef(b, word, "%s", text)
}

// algorithmOf gives the word for how a rule counts: one for all of its limits.
func algorithmOf(r *guard.Result) string { return r.Rule.Policies[0].Algorithm.String() }

// strictest gives the result that decides for a rule.
func strictest(results []guard.Result) *guard.Result {
	worst := &results[0]
	for i := range results {
		r := &results[i]
		if r.Decision.Verdict > worst.Decision.Verdict ||
			r.Decision.Verdict == worst.Decision.Verdict && r.Decision.Reason > worst.Decision.Reason {
			worst = r
		}
	}
	return worst
}

// writeDecision tells what a rule does with the request.
func (e *explanation) writeDecision(b *strings.Builder, r *guard.Result, results []guard.Result) {
	d, x := &r.Decision, &r.Rule.Exceed
	text := fmt.Sprintf("%s, %s", d.Verdict, d.Reason)
	switch {
	case d.Verdict == headgate.Wait:
		longest := time.Duration(0)
		for i := range results {
			longest = max(longest, results[i].Decision.RetryAfter)
		}
		text += ": it waits " + span(longest)
	case d.Verdict == headgate.Deny:
		text += ": " + refusalText(r)
	case d.Reason == headgate.Degraded:
		text += fmt.Sprintf(": it passes, and the service sees %s: %s", x.Header, x.Value)
	case d.Reason == headgate.SoftLimit:
		text += fmt.Sprintf(": it passes, and caller and service see %s", guard.FieldMark)
	}
	linef(b, "decision", "%s", text)
}

// refusalText says how a rule refuses, if no other refuses first.
func refusalText(r *guard.Result) string {
	alone := guard.Answer{Verdict: headgate.Deny, Results: []guard.Result{*r}}
	text := "status " + strconv.Itoa(alone.Status())
	if r.Rule.Exceed.Action == guard.Redirect && r.Rule.Exceed.Location != "" {
		text += " to " + r.Rule.Exceed.Location
	}
	if r.Decision.RetryAfter > 0 {
		text += ", again in " + span(r.Decision.RetryAfter)
	}
	return text
}

// writeAnswer tells what the client gets of us.
func (e *explanation) writeAnswer(b *strings.Builder) {
	b.WriteByte('\n')
	a := &e.exchange.Answer
	switch {
	case e.failed != nil:
		_, problem, _ := strings.Cut(e.failed.Error(), ": ") // Without the name of a package.
		fmt.Fprintf(b, "answer %d %s: %s\n", e.answer.status, http.StatusText(e.answer.status), problem)
	case a.Verdict == headgate.Deny:
		fmt.Fprintf(b, "answer %d %s: %s\n", e.answer.status, http.StatusText(e.answer.status), fields.Detail(a.Closest()))
	case a.Verdict == headgate.Wait:
		fmt.Fprintf(b, "answer that of the service, after a wait of %s\n", span(a.RetryAfter()))
	default:
		b.WriteString("answer that of the service\n")
	}
	writeHeader(b, e.answer.header)
}

// writeForward tells what is on the request to the service that the client did not send.
func (e *explanation) writeForward(b *strings.Builder) {
	added := http.Header{}
	for name, values := range e.forward.Header {
		if !slices.Equal(values, e.request.Header[name]) {
			added[name] = values
		}
	}
	if len(added) > 0 {
		b.WriteString("the service sees\n")
		writeHeader(b, added)
	}
	for _, name := range e.guard.Marks() {
		if len(e.request.Header[name]) > 0 && len(e.forward.Header[name]) == 0 {
			fmt.Fprintf(b, "the service does not see %s: only headgate sends it\n", name)
		}
	}
}

func writeHeader(b *strings.Builder, h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fmt.Fprintf(b, "  %s: %s\n", name, value)
		}
	}
}

// writeRuns tells of all requests when there are several.
func (e *explanation) writeRuns(b *strings.Builder) {
	if len(e.runs) == 0 || e.runs[len(e.runs)-1].to == 1 {
		return
	}
	fmt.Fprintf(b, "\nof %d requests at one time\n", e.runs[len(e.runs)-1].to)
	for _, run := range e.runs {
		which := strconv.Itoa(run.from)
		if run.to > run.from {
			which += " to " + strconv.Itoa(run.to)
		}
		fmt.Fprintf(b, "  %s: %s\n", which, run.text)
	}
}

// span writes a length of time as configurations do, to the millisecond.
func span(d time.Duration) string {
	if d >= 10*time.Millisecond {
		d = d.Round(time.Millisecond)
	}
	return headgate.Limit{Per: d}.Period()
}
