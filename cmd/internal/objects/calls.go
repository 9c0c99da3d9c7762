package objects

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// Bounds of the calls for objects.
const (
	maxPage = 1000
	// maxPageText ends a page early: an object has up to 64 KiB.
	maxPageText = 1 << 20
)

// Component is the component of the calls for rules, plans, customers, and records of their changes.
type Component struct {
	component.Defaults

	log      *slog.Logger
	inEffect func() *config.Config // The configuration in effect.
	file     fileObjects
	// Followed has the objects of the source; nil without one. Set it before the instance serves.
	Followed Followed
}

// New makes the component. Without a source, the objects are those of the configuration in effect.
func New(log *slog.Logger, inEffect func() *config.Config) *Component {
	return &Component{log: log, inEffect: inEffect}
}

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	all := []calls.Call{{
		Pattern: "GET /api/v1/audit", Scope: config.ScopeAdminister,
		Handler: calls.OwnSiteOrProgram(calls.Parameters(c.log, c.listAudit, "object", "limit", "after")),
	}}
	for _, kind := range source.Kinds() {
		all = append(all, (&objectCalls{c, kind}).calls()...)
	}
	return all
}

// objectCalls serves /api/v1/rules, /api/v1/plans and /api/v1/customers.
type objectCalls struct {
	*Component

	kind source.Kind
}

// calls lists the calls for objects of one kind.
func (c *objectCalls) calls() []calls.Call {
	at := "/api/v1/" + c.kind.Section()
	change := []string{"name", "revision", "dry_run", "reason", "wait"}
	call := func(verb string, handler http.HandlerFunc, parameters ...string) calls.Call {
		return calls.Call{
			Pattern: verb + " " + at, Scope: config.ScopeAdminister,
			Handler: calls.OwnSiteOrProgram(calls.Parameters(c.log, handler, parameters...)),
		}
	}
	return []calls.Call{
		call("GET", c.read, "name", "limit", "after"), call("PUT", c.put, change...),
		call("PATCH", c.patch, change...), call("DELETE", c.remove, change...),
	}
}

// read answers with one object, or with a page of the list.
func (c *objectCalls) read(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Has("name") {
		key, failure := c.key(r)
		if failure != nil {
			calls.Fail(c.log, w, failure)
			return
		}
		c.readOne(w, r, key)
		return
	}
	n, failure := calls.PageSize(query.Get("limit"), calls.DefaultPage, maxPage)
	if failure != nil {
		calls.Fail(c.log, w, failure)
		return
	}
	all, failure := c.objects()
	if failure != nil {
		calls.Fail(c.log, w, failure)
		return
	}
	calls.WriteJSON(c.log, w, pageOf(all.list(c.kind, query.Get("after"), n+1), n))
}

// pageOf makes a page of at most n objects and about maxPageText bytes.
func pageOf(all []admin.Object, n int) admin.Objects {
	page, size := admin.Objects{Objects: []admin.Object{}}, 0
	for i := range all {
		size += len(all[i].Text)
		if i == n || i > 0 && size > maxPageText {
			page.Next = all[i-1].Name
			break
		}
		page.Objects = append(page.Objects, all[i])
	}
	return page
}

// readOne answers with an object as the source has it, so that its revision can be written. Without a source that can
// be written, it is the object in force.
func (c *objectCalls) readOne(w http.ResponseWriter, r *http.Request, key source.Key) {
	present, failure := c.present(r.Context(), key)
	switch {
	case failure != nil:
		calls.Fail(c.log, w, failure)
	case present == nil:
		calls.Fail(c.log, w, notFound(key))
	default:
		calls.WriteJSON(c.log, w, present)
	}
}

func notFound(key source.Key) *calls.Failure {
	return calls.Failed(admin.Failure{
		Code:  admin.CodeNotFound,
		Error: "there is no " + key.Kind.String() + " " + strconv.Quote(key.Name) + ": list them to see their names",
	}, http.StatusNotFound)
}

// key reads the name of an object. It is in the query, because a path with a slash or two dots in it would be changed
// on its way.
func (c *objectCalls) key(r *http.Request) (source.Key, *calls.Failure) {
	name := r.URL.Query().Get("name")
	if source.CheckName(name) != nil {
		return source.Key{}, calls.BadRequest("name is missing or is not valid: write ?name=NAME with 1 to " +
			strconv.Itoa(source.MaxName) + " bytes of printable UTF-8, percent-encoded")
	}
	return source.Key{Kind: c.kind, Name: name}, nil
}
