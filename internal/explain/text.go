package explain

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
)

// write tells of the last request: rule by rule, and what client and service see.
func (e *explanation) write(out io.Writer) error {
	var b strings.Builder
	e.writeRequest(&b)
	if e.failed == nil {
		e.writeResults(&b)
	}
	e.writeAnswer(&b)
	if e.forward != nil {
		e.writeForward(&b)
	}
	e.writeRuns(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// writeResults tells of fair share and of each rule, in the order in which they are told
// of to others.
func (e *explanation) writeResults(b *strings.Builder) {
	results, ruled := e.exchange.Answer.Results, false
	for len(results) > 0 {
		n := slices.IndexFunc(results, func(r guard.Result) bool { return r.Rule != results[0].Rule })
		if n < 0 {
			n = len(results)
		}
		if results[0].Stage == guard.FairShareName {
			e.writeShare(b, &results[0])
		} else {
			e.writeRule(b, results[:n])
			ruled = true
		}
		results = results[n:]
	}
	e.writeExempt(b)
	closest := e.exchange.Answer.Closest()
	switch {
	case ruled:
	case closest != nil && closest.Stage == guard.FairShareName && e.exchange.Answer.Verdict == headgate.Deny && !e.config.Independent:
		b.WriteString("\nrules are not asked: what fair share refuses, they do not count\n")
	default:
		e.writeNearest(b)
	}
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
