package app

import (
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// Bounds of the calls for objects.
const (
	defaultPage = 100
	maxPage     = 1000
	// maxPageText ends a page early: an object has up to 64 KiB.
	maxPageText = 1 << 20
	maxReason   = 1024
)

// objectCalls serves /api/v1/rules, /api/v1/plans and /api/v1/customers.
type objectCalls struct {
	*adminServers

	kind source.Kind
}

// routesOf lists the calls for objects of one kind.
func (a *adminServers) routesOf(kind source.Kind) []adminRoute {
	c, at := &objectCalls{a, kind}, "/api/v1/"+kind.Section()
	change := []string{"name", "revision", "dry_run", "reason", "wait"}
	return []adminRoute{
		{"GET " + at, config.ScopeAdminister, ownSiteOrProgram(a.parameters(c.read, "name", "limit", "after"))},
		{"PUT " + at, config.ScopeAdminister, ownSiteOrProgram(a.parameters(c.put, change...))},
		{"PATCH " + at, config.ScopeAdminister, ownSiteOrProgram(a.parameters(c.patch, change...))},
		{"DELETE " + at, config.ScopeAdminister, ownSiteOrProgram(a.parameters(c.remove, change...))},
	}
}

// read answers with one object, or with a page of the list.
func (c *objectCalls) read(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Has("name") {
		key, failure := c.key(r)
		if failure != nil {
			c.fail(w, failure)
			return
		}
		c.readOne(w, r, key)
		return
	}
	n, failure := pageSize(query.Get("limit"), defaultPage, maxPage)
	if failure != nil {
		c.fail(w, failure)
		return
	}
	all, failure := c.instance.objects()
	if failure != nil {
		c.fail(w, failure)
		return
	}
	writeJSON(c.instance.options.Log, w, pageOf(all.list(c.kind, query.Get("after"), n+1), n))
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
		c.fail(w, failure)
	case present == nil:
		c.fail(w, notFound(key))
	default:
		writeJSON(c.instance.options.Log, w, present)
	}
}

func notFound(key source.Key) *failure {
	return &failure{admin.Failure{
		Code:  admin.CodeNotFound,
		Error: "there is no " + key.Kind.String() + " " + strconv.Quote(key.Name) + ": list them to see their names",
	}, http.StatusNotFound}
}

// failure is an answer with its status.
type failure struct {
	admin.Failure

	status int
}

func badRequest(text string) *failure {
	return &failure{admin.Failure{Code: admin.CodeBadRequest, Error: text}, http.StatusBadRequest}
}

func (a *adminServers) fail(w http.ResponseWriter, f *failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	writeJSON(a.instance.options.Log, w, f.Failure)
}

// key reads the name of an object. It is in the query, because a path with a slash or two dots in it would be changed
// on its way.
func (c *objectCalls) key(r *http.Request) (source.Key, *failure) {
	name := r.URL.Query().Get("name")
	if source.CheckName(name) != nil {
		return source.Key{}, badRequest("name is missing or is not valid: write ?name=NAME with 1 to " + strconv.Itoa(source.MaxName) +
			" bytes of printable UTF-8, percent-encoded")
	}
	return source.Key{Kind: c.kind, Name: name}, nil
}

// pageSize reads the number of entries of a page.
func pageSize(text string, standard, most int) (int, *failure) {
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badRequest("limit must be a number from 1 to " + strconv.Itoa(most))
	}
	return n, nil
}

// terms are what a change says beside the new text.
type terms struct {
	revision int64
	dryRun   bool
	// hurried says that the caller does not wait until the change is in force.
	hurried bool
	reason  string
}

// termsOf reads the terms of a change. revised says that it needs the revision.
func termsOf(r *http.Request, revised bool) (t terms, f *failure) {
	query := r.URL.Query()
	switch query.Get("dry_run") {
	case "", "0":
	case "1":
		t.dryRun = true
	default:
		return t, badRequest("dry_run must be 1, which only checks the change, or 0")
	}
	t.reason = query.Get("reason")
	invisible := func(c rune) bool { return !unicode.IsPrint(c) }
	if len(t.reason) > maxReason || !utf8.ValidString(t.reason) || strings.ContainsFunc(t.reason, invisible) {
		return t, badRequest("reason must be one line of at most " + strconv.Itoa(maxReason) + " bytes")
	}
	if !revised {
		return t, nil
	}
	switch query.Get("wait") {
	case "", "1":
	case "0":
		t.hurried = true
	default:
		return t, badRequest("wait must be 0, which does not wait until the change is in force, or 1")
	}
	var err error
	if t.revision, err = strconv.ParseInt(query.Get("revision"), 10, 64); err != nil || t.revision < 0 {
		return t, badRequest("revision is missing or is not valid: read the object, and write its revision; 0 makes a new object")
	}
	return t, nil
}
