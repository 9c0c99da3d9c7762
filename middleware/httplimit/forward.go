package httplimit

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// Forward returns the request for the service: r itself, or a copy if the request must
// change. The copy has the path that the rules matched, and the marks of soft limits and
// of rules that degrade. Values that the client sent under the names of marks are
// removed. r is not changed.
//
// A net/http server removes the uploaded files of r.MultipartForm after the handler, but
// does not know the copy. New's middleware copies the parsed values back to r. Another
// front end whose service parses forms must copy MultipartForm back itself.
func (x *Exchange) Forward(g *guard.Guard, r *http.Request) *http.Request {
	forward := resolved(r, x.Request.Path)
	if !x.Edits(g) {
		return forward
	}
	own, marked := x.marks(g), x.marked()
	if forward == r {
		forward = new(http.Request)
		*forward = *r
	}
	if forward.Header = r.Header.Clone(); forward.Header == nil {
		forward.Header = http.Header{}
	}
	before, _ := r.Context().Value(trustedMarksKey{}).(http.Header)
	for _, name := range own {
		if kept := fields.Kept(forward.Header[name], before[name]); len(kept) > 0 {
			forward.Header[name] = kept
		} else {
			delete(forward.Header, name)
		}
	}
	if !marked {
		return forward
	}
	return forward.WithContext(context.WithValue(r.Context(), trustedMarksKey{}, x.mark(forward.Header, before)))
}

// Edits reports whether Forward changes the header of the request. Call it after an Admit without error.
func (x *Exchange) Edits(g *guard.Guard) bool {
	return x.marked() || sent(x.marks(g), x.Request.Header)
}

// marks returns the names of marks.
func (x *Exchange) marks(g *guard.Guard) []string {
	if x.decided {
		return x.ticket.Marks() // A reload may have changed the guard's marks since Admit.
	}
	return g.Marks()
}

// trustedMarksKey is the context key for the marks that earlier guards in this process
// set, by name. The next guard keeps these marks. Clients cannot write to the context.
type trustedMarksKey struct{}

// resolved returns r with the path that the rules matched. The path of a CONNECT request
// may stay empty.
func resolved(r *http.Request, path string) *http.Request {
	if r.URL.Path == path || r.URL.Path == "" && r.Method == http.MethodConnect {
		return r
	}
	forward, at := *r, *r.URL
	at.Path, at.RawPath = path, ""
	forward.URL = &at
	if r.RequestURI != "" {
		forward.RequestURI = at.RequestURI() // Some handlers read RequestURI instead of URL.
	}
	return &forward
}

// copyBack copies the values that later handlers parsed from the forwarded copy to r.
// net/http then removes the files of MultipartForm, and outer handlers see Pattern.
func copyBack(r, forward *http.Request) {
	r.Form, r.PostForm, r.MultipartForm = forward.Form, forward.PostForm, forward.MultipartForm
	r.Pattern = forward.Pattern
}

// sent reports whether the client has sent one of the headers.
func sent(names []string, h headgate.Values) bool {
	for _, name := range names {
		if _, found := h.Lookup(name); found {
			return true
		}
	}
	return false
}

// marked reports whether a result or a stage adds a mark for the service.
func (x *Exchange) marked() bool {
	if x.decided && len(x.ticket.Headers()) > 0 {
		return true
	}
	for i := range x.Answer.Results {
		r := &x.Answer.Results[i]
		if reason := r.Decision.Reason; r.Enforced() && (reason == headgate.SoftLimit || reason == headgate.Degraded || r.AboveSoft) {
			return x.decided
		}
	}
	return false
}

// mark adds the marks for the service to h. If several rules degrade with the same header
// and different values, it adds all values in order. Marks of earlier guards stay, before
// the new marks. mark returns all marks in h.
func (x *Exchange) mark(h, before http.Header) (set http.Header) {
	set = before.Clone()
	if set == nil {
		set = http.Header{}
	}
	add := func(name, value string) {
		h[name] = append(fields.Kept(h[name], set[name]), value) // Kept removes the client's own values.
		set[name] = slices.Clip(h[name])
		keepEndToEnd(h, name)
	}
	if warning := fields.Warning(&x.Answer); warning != "" {
		add(guard.FieldMark, warning)
	}
	for i := range x.Answer.Results {
		r := &x.Answer.Results[i]
		if r.Decision.Reason != headgate.Degraded || !r.Enforced() {
			continue
		}
		if name, value := r.Rule.Exceed.Header, r.Rule.Exceed.Value; !slices.Contains(set[name], value) {
			add(name, value)
		}
	}
	for _, header := range x.ticket.Headers() {
		add(header.Name, header.Value)
	}
	return set
}

// keepEndToEnd removes a name from the Connection fields. A client could list a mark there,
// and a later proxy would drop the mark as hop-by-hop.
func keepEndToEnd(h http.Header, name string) {
	for i, line := range h["Connection"] {
		options := strings.Split(line, ",")
		kept := slices.DeleteFunc(options, func(option string) bool { return strings.EqualFold(strings.Trim(option, " \t"), name) })
		h["Connection"][i] = strings.Join(kept, ",")
	}
}
