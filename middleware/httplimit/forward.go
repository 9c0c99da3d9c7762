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
	own, marked := x.own(g), x.marked()
	if !marked && !sent(own, headers(r.Header)) {
		return forward
	}
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

// Mark is Forward for a gateway, which sends the request to another process: it changes the fields of the request, which are h, in
// place of a copy. The context stays as it is, because no later guard in this process reads the marks. The values in h are
// valid until Reset.
func (x *Exchange) Mark(g *guard.Guard, r *http.Request, h ResponseFields) *http.Request {
	for _, name := range x.own(g) {
		h.Delete(name)
	}
	if x.marked() {
		x.eachMark(func(name, value string, again bool) {
			lines := h.Lines(name) // Only marks, because own has all names.
			switch {
			case len(lines) == 0:
				x.marks = append(x.marks, value)
				last := len(x.marks)
				h.Set(name, x.marks[last-1:last:last])
			case again || !slices.Contains(lines, value):
				h.Set(name, append(slices.Clone(lines), value))
			}
			if options := h.Lines("Connection"); len(options) > 0 {
				options = slices.Clone(options)
				keepEndToEnd(options, name)
				h.Set("Connection", options)
			}
		})
	}
	return resolved(r, x.Request.Path)
}

// own returns the names that only this guard may give values.
func (x *Exchange) own(g *guard.Guard) []string {
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
	x.eachMark(func(name, value string, again bool) {
		if !again && slices.Contains(set[name], value) {
			return
		}
		h[name] = append(fields.Kept(h[name], set[name]), value) // Kept removes the client's own values.
		set[name] = slices.Clip(h[name])
		keepEndToEnd(h["Connection"], name)
	})
	return set
}

// eachMark calls add with the marks in order. again: the mark is added although its name has this value already.
func (x *Exchange) eachMark(add func(name, value string, again bool)) {
	if warning := fields.Warning(&x.Answer); warning != "" {
		add(guard.FieldMark, warning, true)
	}
	for i := range x.Answer.Results {
		r := &x.Answer.Results[i]
		if r.Decision.Reason == headgate.Degraded && r.Enforced() {
			add(r.Rule.Exceed.Header, r.Rule.Exceed.Value, false)
		}
	}
	for _, header := range x.ticket.Headers() {
		add(header.Name, header.Value, true)
	}
}

// keepEndToEnd removes a name from the Connection fields. A client could list a mark there,
// and a later proxy would drop the mark as hop-by-hop.
func keepEndToEnd(lines []string, name string) {
	for i, line := range lines {
		options := strings.Split(line, ",")
		kept := slices.DeleteFunc(options, func(option string) bool { return strings.EqualFold(strings.Trim(option, " \t"), name) })
		lines[i] = strings.Join(kept, ",")
	}
}
