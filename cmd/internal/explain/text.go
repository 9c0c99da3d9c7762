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
	"github.com/headgate/headgate/internal/fields"
)

// write describes the last request: each rule, the answer, and the request to the service.
func (e *explanation) write(out io.Writer) error {
	var b strings.Builder
	e.writeRequest(&b)
	switch {
	case e.failed != nil:
	case e.Answer.Exempt:
		e.writeUndecided(&b)
	default:
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

// writeResults describes the results of fair share and of each rule, in the guard's order.
func (e *explanation) writeResults(b *strings.Builder) {
	results, ruled := e.Answer.Results, false
	for len(results) > 0 {
		n := slices.IndexFunc(results, func(r guard.Result) bool { return r.Rule != results[0].Rule })
		if n < 0 {
			n = len(results)
		}
		switch results[0].Stage {
		case guard.FairShareName:
			e.writeShare(b, &results[0])
		case "":
			e.writeRule(b, results[:n])
			ruled = true
		default:
			e.writeStage(b, &results[0])
		}
		results = results[n:]
	}
	ruled = e.writeUncounted(b) || ruled
	e.writePassedOver(b)
	e.writeSkipped(b)
	e.writeExempt(b)
	closest := e.Answer.Closest()
	switch {
	case ruled:
	case closest != nil && closest.Stage == guard.FairShareName && e.Answer.Verdict == headgate.Deny && !e.Config.Independent:
		b.WriteString("\nno rule decides: rules do not count requests that fair share refuses\n")
	default:
		e.writeNearest(b)
	}
}

// linef writes an indented line that starts with a word.
func linef(b *strings.Builder, word, format string, args ...any) {
	fmt.Fprintf(b, "  %-9s %s\n", word, fmt.Sprintf(format, args...))
}

func (e *explanation) writeRequest(b *strings.Builder) {
	r, seen := e.sent, &e.exchange.Request
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

// writeAnswer describes the answer that headgate sends to the client.
func (e *explanation) writeAnswer(b *strings.Builder) {
	b.WriteByte('\n')
	a := e.Answer
	switch {
	case e.failed != nil:
		_, problem, _ := strings.Cut(e.failed.Error(), ": ") // The text without the package name.
		fmt.Fprintf(b, "answer %d %s: %s\n", e.response.status, http.StatusText(e.response.status), problem)
	case a.Drops():
		fmt.Fprintf(b, "no answer: the connection, or the stream of HTTP/2, is closed: %s\n", fields.Detail(a.Closest()))
		return
	case a.Verdict == headgate.Deny:
		fmt.Fprintf(b, "answer %d %s: %s\n", e.response.status, http.StatusText(e.response.status), fields.Detail(a.Closest()))
	case a.Verdict == headgate.Wait:
		fmt.Fprintf(b, "answer from the service, after a wait of %s\n", span(a.RetryAfter()))
	default:
		b.WriteString("answer from the service\n")
	}
	writeHeader(b, e.response.header)
}

// writeForward lists the header fields that headgate adds to the request to the service.
func (e *explanation) writeForward(b *strings.Builder) {
	added := http.Header{}
	for name, values := range e.forward.Header {
		if !slices.Equal(values, e.sent.Header[name]) {
			added[name] = values
		}
	}
	if len(added) > 0 {
		b.WriteString("the service sees\n")
		writeHeader(b, added)
	}
	for _, name := range e.Guard.Marks() {
		if len(e.sent.Header[name]) > 0 && len(e.forward.Header[name]) == 0 {
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

// writeRuns lists the results of all requests when there are several.
func (e *explanation) writeRuns(b *strings.Builder) {
	if len(e.runs) == 0 || e.runs[len(e.runs)-1].to == 1 {
		return
	}
	fmt.Fprintf(b, "\nof %d requests at the same time\n", e.runs[len(e.runs)-1].to)
	for _, run := range e.runs {
		which := strconv.Itoa(run.from)
		if run.to > run.from {
			which += " to " + strconv.Itoa(run.to)
		}
		fmt.Fprintf(b, "  %s: %s\n", which, run.text)
	}
}

// Span formats a duration as configurations do, rounded to milliseconds.
func Span(d time.Duration) string { return span(d) }

// span formats a duration as configurations do, rounded to milliseconds.
func span(d time.Duration) string {
	if d >= 10*time.Millisecond {
		d = d.Round(time.Millisecond)
	}
	return headgate.Limit{Per: d}.Period()
}
