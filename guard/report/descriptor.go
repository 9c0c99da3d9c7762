package report

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// The codes of a descriptor that rules decide, as Envoy's rate limit service has them.
const (
	codeOK        = "OK"
	codeOverLimit = "OVER_LIMIT"
)

const (
	// mostEntries bounds the text of the entries in a line, in bytes, without the number of further
	// entries.
	mostEntries = 2048
	// mostDomain bounds the domain in a line. Rules may decide domains that only clients know.
	mostDomain = 128
)

// ObserveDescriptor logs the decision of a domain's tree on one descriptor, and counts a refusal for
// TopKeys. The guard reports decisions of rules by itself. code is the code of the descriptor in the
// answer, or of the error that answers the whole request. A descriptor without a limit is not logged.
//
// A line has the domain, the entries in the form of log.keys, the hits and the code, beside the
// fields of a rule's line. A line has at most about 2 KiB of text that the client chose.
// ObserveDescriptor allocates nothing for a decision that is not logged.
func (r *Report) ObserveDescriptor(req *headgate.Request, a *guard.Answer, code string) {
	switch {
	case !a.InTree() || len(a.Results) == 0:
		return
	case a.StoreError != nil && errors.Is(a.StoreError, guard.ErrCallerGone):
		r.abandoned.Add(1)
		return
	}
	if a.StoreError != nil {
		r.storeClock.observe(a.StoreError, r.logged())
	}
	last, _ := strictest(a.Results)
	refused := last.Decision.Verdict == headgate.Deny
	r.logged().lines.offer(last, refused, subject{req, a, code})
	if refused && !(last.Fallback && last.Rule.Fallback == guard.FallbackError) {
		r.logged().top.refused(last)
		r.tell(req, a, last)
	}
}

// subject is what a line says about a request and its decision. code is "" unless the request names a domain.
type subject struct {
	req    *headgate.Request
	answer *guard.Answer
	code   string
}

// subjectOf describes a request that rules decided.
func subjectOf(req *headgate.Request, a *guard.Answer) subject {
	about := subject{req: req, answer: a}
	switch {
	case req == nil || req.Domain == "":
	case a.Verdict == headgate.Allow:
		about.code = codeOK
	default:
		about.code = codeOverLimit
	}
	return about
}

// lineDescriptor is the part of a line about a request to a decision server.
type lineDescriptor struct {
	domain, entries, code string
	hits                  int64
}

// describeDescriptor returns nil without a domain. It copies the texts of the request.
func (l *lines) describeDescriptor(d subject) *lineDescriptor {
	if d.code == "" {
		return nil
	}
	described := &lineDescriptor{domain: shortDomain(d.req.Domain), code: d.code, hits: d.req.Cost}
	if d.req.Kind == headgate.Refund {
		described.hits = -described.hits
	}
	if l.names != nil {
		described.entries = string(l.names.AppendEntries(nil, d.req.Descriptors, mostEntries))
	}
	return described
}

func shortDomain(name string) string {
	if len(name) <= mostDomain {
		return strings.Clone(name) // The line outlives the request.
	}
	return name[:mostDomain] + "...(" + strconv.Itoa(len(name)) + " bytes)"
}

// append appends the fields of a line. A nil *lineDescriptor has none.
func (d *lineDescriptor) append(attrs []slog.Attr) []slog.Attr {
	if d == nil {
		return attrs
	}
	attrs = append(attrs, slog.String("domain", d.domain))
	if d.entries != "" {
		attrs = append(attrs, slog.String("descriptors", d.entries))
	}
	return append(attrs, slog.Int64("hits", d.hits), slog.String("code", d.code))
}
