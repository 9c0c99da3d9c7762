package resp

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/remote"
)

// readRequest reads the arguments of HG.DECIDE. The request has copies of the texts.
func readRequest(args [][]byte) (*remote.Request, error) {
	r := new(remote.Request)
	args = args[1:]
	if n := len(args); n >= 2 && is(args[n-2], "cost") {
		cost, ok := parseInt(args[n-1])
		if !ok || cost < 1 || cost > headgate.MaxUnits {
			return nil, fault(fmt.Sprintf("cost is invalid: send a whole number from 1 to %d, "+
				"or leave COST out for the cost that the rule sets", int64(headgate.MaxUnits)))
		}
		r.Cost, args = cost, args[:n-2]
	}
	texts := map[string]*string{
		"method": &r.Method, "host": &r.Host, "path": &r.Path, "ip": &r.IP, "subject": &r.Subject, "domain": &r.Domain,
	}
	for _, arg := range args {
		if !utf8.Valid(arg) {
			return nil, fault("a value is not valid UTF-8: send text in UTF-8")
		}
		name, value, found := strings.Cut(string(arg), "=")
		if !found {
			return nil, fault(fmt.Sprintf("%q has no =: write NAME=VALUE, and COST n at the end", shorten(name)))
		}
		if into, known := texts[name]; known {
			*into = value
			delete(texts, name) // So that a second value is found.
			continue
		}
		if err := addEntry(r, name, value); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addEntry adds a header, a cookie, a value of the query or a descriptor.
func addEntry(r *remote.Request, name, value string) error {
	part, entry, _ := strings.Cut(name, ":")
	if entry != "" {
		e := headgate.DescriptorEntry{Name: entry, Value: value}
		switch part {
		case "header":
			r.Headers = append(r.Headers, e)
			return nil
		case "cookie":
			r.Cookies = append(r.Cookies, e)
			return nil
		case "query":
			r.Query = append(r.Query, e)
			return nil
		case "descriptor":
			r.Descriptors = append(r.Descriptors, e)
			return nil
		}
	}
	return fault(fmt.Sprintf("%q is not a name, or is sent twice: use method, host, path, ip, subject, domain, header:NAME, "+
		"cookie:NAME, query:NAME and descriptor:NAME", shorten(name)))
}

// shorten bounds a text of a client in an answer.
func shorten(text string) string {
	const most = 64
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// decidedFields is the number of fields of an answer.
const decidedFields = 15

// decided answers HG.DECIDE.
func (w *writer) decided(a *remote.Answer, err error) {
	switch {
	case errors.Is(err, remote.ErrUnavailable):
		w.failure("UNAVAILABLE", err.Error())
		return
	case err != nil:
		w.failure("ERR", err.Error())
		return
	}
	w.fields(decidedFields)
	w.named("verdict", a.Verdict.String())
	w.named("reason", a.Reason.String())
	w.named("policy", a.Policy)
	w.text("limit")
	w.integer(a.Limit)
	w.text("remaining")
	w.integer(a.Remaining)
	w.text("count")
	w.integer(a.Quota.Count)
	w.text("period")
	w.seconds(a.Quota.Per)
	w.text("reset_after")
	w.seconds(a.ResetAfter)
	w.text("retry_after")
	w.seconds(a.RetryAfter)
	w.text("status")
	w.integer(int64(a.Status))
	w.named("location", a.Location)
	w.text("fallback")
	w.boolean(a.Fallback)
	w.lists(a)
	w.text("metered")
	w.integer(a.Metered)
}

func (w *writer) named(name, text string) {
	w.text(name)
	w.text(text)
}

// lists appends the marks and the limits that refuse.
func (w *writer) lists(a *remote.Answer) {
	n := 0
	a.Marks(func(string, string) { n++ })
	w.text("marks")
	w.fields(n)
	a.Marks(w.named)
	n = 0
	a.Violated(func(string) { n++ })
	w.text("violated")
	w.array(n)
	a.Violated(w.text)
}
