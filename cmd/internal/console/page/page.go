// Package page serves the console in a browser: the files of folder web, at /console/ of admin.listen. The files have no data, so that they
// need no token. Their scripts read the calls under /api/v1 with the rights of the operator.
package page

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"

	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// Path is where the files are.
const Path = "/console/"

// policy lets the page load its own files alone. No script runs that is not one of them, and no text becomes HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed web
var files embed.FS

// file is one file, with what its answers say.
type file struct {
	content    []byte
	kind, etag string
}

// load reads the files, by their paths below Path.
func load() (map[string]file, error) {
	all := map[string]file{}
	err := fs.WalkDir(files, "web", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err //nolint:wrapcheck // because the caller does.
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return fmt.Errorf("page: %w", err)
		}
		digest := sha256.Sum256(content)
		all[name[len("web/"):]] = file{content, kindOf(name), `"` + hex.EncodeToString(digest[:12]) + `"`}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	all[""] = all["index.html"]
	return all, nil
}

// kindOf does not depend on the machine's table of types, as mime.TypeByExtension does.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.FormatMediaType("text/html", map[string]string{"charset": "utf-8"})
	}
}

// Component serves the files while admin.console is not off.
type Component struct {
	component.Defaults

	host    *component.Host
	current func() *config.Config
	files   map[string]file
}

// New makes the component. current returns the configuration in effect.
func New(host *component.Host, current func() *config.Config) *Component {
	return &Component{host: host, current: current}
}

// Start implements component.Component.
func (c *Component) Start(context.Context) (begin func(), err error) {
	c.files, err = load()
	return begin, err
}

// Calls implements component.Component. Links of other sites, such as a chat, may open the page in a tab; frames and scripts of other sites
// get nothing.
func (c *Component) Calls() []calls.Call {
	guarded := func(next http.HandlerFunc) http.HandlerFunc {
		own := calls.OwnSite(next)
		return func(w http.ResponseWriter, r *http.Request) {
			if opensTab(r) {
				next(w, r)
				return
			}
			own(w, r)
		}
	}
	return []calls.Call{
		{Pattern: Path, Handler: guarded(c.serve)},
		{Pattern: "GET /{$}", Handler: guarded(c.redirect)},
		{Pattern: "GET /api/v1/me", Scope: config.ScopeRead, Handler: calls.OwnSite(calls.Parameters(c.host.Log, c.me))},
	}
}

func opensTab(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// redirect leads a browser that opens the address of the listener to the console.
func (c *Component) redirect(w http.ResponseWriter, r *http.Request) {
	if c.current().Admin.Console.Off {
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, Path, http.StatusFound)
}

func (c *Component) serve(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	found, ok := c.files[r.URL.Path[len(Path):]]
	switch {
	case c.current().Admin.Console.Off:
		calls.WriteText(w, http.StatusNotFound, "the console is off: write admin: {console: on}, and reload")
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		calls.WriteText(w, http.StatusMethodNotAllowed, "the files of the console are read with GET or HEAD")
		return
	case !ok:
		calls.WriteText(w, http.StatusNotFound, "the console has no such file: open "+Path)
		return
	}
	h := w.Header()
	h.Set("ETag", found.etag)
	if r.Header.Get("If-None-Match") == found.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", found.kind)
	h.Set("Content-Length", strconv.Itoa(len(found.content)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(found.content) // A browser that has left needs no answer.
	}
}

// protect sets the fields that keep other pages, and texts of clients, from acting in the console.
func protect(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), microphone=(), geolocation=()",
		"Cache-Control":                "no-cache",
	} {
		h.Set(name, value)
	}
}
