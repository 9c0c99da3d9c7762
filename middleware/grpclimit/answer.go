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

// toldKey finds in the context of a call whether a guard before in this process tells
// the caller by this style.
type toldKey fields.Style

// numbered reports whether a field of the style holds one number, and no list.
func numbered(s fields.Style) bool { return s == fields.XRateLimit || s == fields.Draft03 }

// note gives the context for the service, and for a second guard, with what the caller
// is told: the fields that hold one number are those of the first guard.
func (l *limit) note(ctx context.Context, told metadata.MD) context.Context {
	if numbered(l.options.Style) && len(told) > 1 { // One is the warning.
		return context.WithValue(ctx, toldKey(l.options.Style), true)
	}
	return ctx
}

// tell gives the metadata that tell a caller of its limit; nil is none.
func (l *limit) tell(ctx context.Context, a *guard.Answer) metadata.MD {
	style := l.options.Style
	if numbered(style) && ctx.Value(toldKey(style)) != nil {
		style = fields.None
	}
	if a.Closest() == nil || style == fields.None && fields.Warning(a) == "" {
		return nil
	}
	h := make(http.Header, 3)
	style.Announce(h, a)
	told := make(metadata.MD, len(h))
	for name, values := range h {
		told[strings.ToLower(name)] = values
	}
	return told
}

// pushBack gives the metadata of a refused call: those of tell, and when clients with
// a retry policy of their own may try again.
func (l *limit) pushBack(ctx context.Context, a *guard.Answer) metadata.MD {
	told := l.tell(ctx, a)
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
func mark(ctx context.Context, sent incoming, own []string, a *guard.Answer, staged []guard.Header) context.Context {
	forged := slices.ContainsFunc(own, func(name string) bool { return len(sent.values(name)) > 0 })
	if !forged && !marked(a) && len(staged) == 0 {
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
	for _, header := range staged {
		md.Append(header.Name, header.Value)
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
