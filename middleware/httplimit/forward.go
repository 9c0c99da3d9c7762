package httplimit

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/fields"
)

// Forward gives the request for the service: r itself, or a copy where it has to
// differ. The copy has the path that the rules matched, the marks of soft limits
// and of rules that degrade, and nothing that the client itself sent under the
// names of marks. r is not changed.
//
// A server of net/http removes the uploaded files of r.MultipartForm when the handler
// ends, and does not know the copy. New gives what the next handler parsed back to r;
// a front whose service parses forms copies MultipartForm to r after the service.
func (x *Exchange) Forward(g *guard.Guard, r *http.Request) *http.Request {
	forward := resolved(r, x.Request.Path)
	own := g.Marks()
	if x.decided {
		own = x.ticket.Marks() // A reload may have come in between.
	}
	marked := x.marked()
	if !marked && !sent(own, r.Header) {
		return forward
	}
	if forward == r {
		forward = new(http.Request)
		*forward = *r
	}
	if forward.Header = r.Header.Clone(); forward.Header == nil {
		forward.Header = http.Header{}
	}
	before, _ := r.Context().Value(vouchedKey{}).(http.Header)
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
	return forward.WithContext(context.WithValue(r.Context(), vouchedKey{}, x.mark(forward.Header, before)))
}

// vouchedKey finds in the context of a request the marks that guards before in this
// process set, by name. The next guard keeps them: a client cannot write there.
type vouchedKey struct{}

// resolved gives r with the path that the rules matched. CONNECT may have none, and
// then keeps it so.
func resolved(r *http.Request, path string) *http.Request {
	if r.URL.Path == path || r.URL.Path == "" && r.Method == http.MethodConnect {
		return r
	}
	forward, at := *r, *r.URL
	at.Path, at.RawPath = path, ""
	forward.URL = &at
	if r.RequestURI != "" {
		forward.RequestURI = at.RequestURI() // Some handlers read it instead of URL.
	}
	return &forward
}

// giveBack writes into r what the next handlers found out with the copy that they
// got, as they would have without a copy. net/http then removes the files of
// MultipartForm from the temporary folder, and a handler outside sees Pattern.
func giveBack(r, forward *http.Request) {
	r.Form, r.PostForm, r.MultipartForm = forward.Form, forward.PostForm, forward.MultipartForm
	r.Pattern = forward.Pattern
}

// sent reports whether a client has sent one of the names.
func sent(names []string, h http.Header) bool {
	for _, name := range names {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// marked reports whether the service is to be told of a result, or by a stage.
func (x *Exchange) marked() bool {
	if x.decided && len(x.ticket.Headers()) > 0 {
		return true
	}
	for i := range x.Answer.Results {
		r := &x.Answer.Results[i]
		if reason := r.Decision.Reason; r.Enforced() && (reason == headgate.SoftLimit || reason == headgate.Degraded) {
			return x.decided
		}
	}
	return false
}

// mark tells the service what the guard decided. Rules that degrade by one header
// with different values are all heard, in their order.
// Marks of guards before stay, in front of ours. mark gives all marks that h has now.
func (x *Exchange) mark(h, before http.Header) (set http.Header) {
	set = before.Clone()
	if set == nil {
		set = http.Header{}
	}
	add := func(name, value string) {
		h[name] = append(fields.Kept(h[name], set[name]), value) // Without the client's.
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

// keepEndToEnd takes a name off the Connection fields. A client could list a mark
// there, and a proxy behind us would drop it as belonging to the connection.
func keepEndToEnd(h http.Header, name string) {
	for i, line := range h["Connection"] {
		options := strings.Split(line, ",")
		kept := slices.DeleteFunc(options, func(option string) bool { return strings.EqualFold(strings.Trim(option, " \t"), name) })
		h["Connection"][i] = strings.Join(kept, ",")
	}
}
