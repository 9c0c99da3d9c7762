package grpclimit

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/fields"
)

// tell gives the metadata that tell a caller of its limit; nil is none.
func (l *limit) tell(a *guard.Answer) metadata.MD {
	if a.Closest() == nil || l.options.Style == fields.None && fields.Warning(a) == "" {
		return nil
	}
	h := make(http.Header, 3)
	l.options.Style.Announce(h, a)
	told := make(metadata.MD, len(h))
	for name, values := range h {
		told[strings.ToLower(name)] = values
	}
	return told
}

// pushBack gives the metadata of a refused call: those of tell, and when clients with
// a retry policy of their own may try again.
func (l *limit) pushBack(a *guard.Answer) metadata.MD {
	told := l.tell(a)
	if told == nil {
		told = make(metadata.MD, 1)
	}
	told[strings.ToLower(fields.FieldPushback)] = []string{fields.Pushback(a.Closest())}
	return told
}

// vouchedKey finds in a context the marks that guards before in this process set.
type vouchedKey struct{}

// mark gives the context for the service: with the marks that the guard sets, and
// without what the client sent under the names of any.
func mark(ctx context.Context, sent incoming, own []string, a *guard.Answer) context.Context {
	forged := slices.ContainsFunc(own, func(name string) bool { return len(sent.values(name)) > 0 })
	if !forged && !marked(a) {
		return ctx
	}
	md, ok := metadata.FromIncomingContext(ctx) // A copy.
	if !ok {
		md = metadata.MD{}
	}
	before, _ := ctx.Value(vouchedKey{}).(metadata.MD)
	for _, name := range own {
		kept := fields.Kept(md.Get(name), before.Get(name))
		md.Delete(name)
		md.Append(name, kept...)
	}
	if warning := fields.Warning(a); warning != "" {
		md.Append(guard.FieldMark, warning)
	}
	for i := range a.Results {
		r := &a.Results[i]
		if !degraded(r) {
			continue
		}
		// Rules that degrade by one name with different values are all heard.
		name, value := r.Rule.Exceed.Header, r.Rule.Exceed.Value
		if !slices.Contains(md.Get(name), value) {
			md.Append(name, value)
		}
	}
	set := make(metadata.MD, len(own))
	for _, name := range own {
		set.Append(name, md.Get(name)...)
	}
	return context.WithValue(metadata.NewIncomingContext(ctx, md), vouchedKey{}, set)
}

func marked(a *guard.Answer) bool {
	for i := range a.Results {
		if r := &a.Results[i]; degraded(r) || r.Enforced() && r.Decision.Reason == headgate.SoftLimit {
			return true
		}
	}
	return false
}

func degraded(r *guard.Result) bool { return r.Enforced() && r.Decision.Reason == headgate.Degraded }
