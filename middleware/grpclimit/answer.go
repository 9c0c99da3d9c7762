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
	for _, name := range own {
		md.Delete(name)
	}
	if warning := fields.Warning(a); warning != "" {
		md.Set(guard.FieldMark, warning)
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
	return metadata.NewIncomingContext(ctx, md)
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
