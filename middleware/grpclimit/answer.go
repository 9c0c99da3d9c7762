package grpclimit

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// announcedKey is the context key that says that an earlier guard in this process has
// announced its limit in this style.
type announcedKey Style

// numbered reports whether each field of the style is one number, and not a list.
func numbered(s Style) bool { return s != fields.Draft && s != fields.None }

// note returns the context for the service and for a second guard. With a numbered style
// it records that this guard has set the fields, so that a second guard does not.
func (l *limit) note(ctx context.Context, announced metadata.MD) context.Context {
	if numbered(l.options.Style) && len(announced) > 1 { // A single field is the warning.
		return context.WithValue(ctx, announcedKey(l.options.Style), true)
	}
	return ctx
}

// announce returns the metadata with a caller's limit, or nil.
func (l *limit) announce(ctx context.Context, a *guard.Answer) metadata.MD {
	style := l.options.Style
	if numbered(style) && ctx.Value(announcedKey(style)) != nil {
		style = fields.None
	}
	if a.Closest() == nil || style == fields.None && fields.Warning(a) == "" && a.Metered() == 0 {
		return nil
	}
	h := make(http.Header, 3)
	style.Announce(h, a)
	announced := make(metadata.MD, len(h))
	for name, values := range h {
		announced[strings.ToLower(name)] = values
	}
	return announced
}

// pushBack returns the metadata of a refused call: those of announce, and the time of the
// next attempt for clients with a retry policy.
func (l *limit) pushBack(ctx context.Context, a *guard.Answer) metadata.MD {
	announced := l.announce(ctx, a)
	if announced == nil {
		announced = make(metadata.MD, 1)
	}
	announced[pushbackKey] = []string{fields.Pushback(a.Closest())}
	return announced
}

// trustedMarksKey is the context key for the marks that earlier guards in this process set.
type trustedMarksKey struct{}

// mark returns the context for the service. It adds the guard's marks to the incoming
// metadata, and removes what the client sent under their names.
func mark(ctx context.Context, sent incoming, own []string, a *guard.Answer, staged []guard.Header) context.Context {
	forged := slices.ContainsFunc(own, func(name string) bool { return len(sent.values(name)) > 0 })
	if !forged && !marked(a) && len(staged) == 0 {
		return ctx
	}
	md, ok := metadata.FromIncomingContext(ctx) // FromIncomingContext returns a copy.
	if !ok {
		md = metadata.MD{}
	}
	before, _ := ctx.Value(trustedMarksKey{}).(metadata.MD)
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
		// If several rules degrade with the same name, all their values are added.
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
	return context.WithValue(metadata.NewIncomingContext(ctx, md), trustedMarksKey{}, set)
}

func marked(a *guard.Answer) bool {
	for i := range a.Results {
		if r := &a.Results[i]; degraded(r) || r.Enforced() && (r.Decision.Reason == headgate.SoftLimit || r.AboveSoft) {
			return true
		}
	}
	return false
}

func degraded(r *guard.Result) bool { return r.Enforced() && r.Decision.Reason == headgate.Degraded }
