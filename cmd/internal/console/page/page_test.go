package page

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// maxWeight bounds all files together, each compressed as a browser would get it, in bytes.
const maxWeight = 64 << 10

// served is a started component with its calls.
func served(t *testing.T, c *config.Config) *http.ServeMux {
	t.Helper()
	host := component.NewHost(slog.New(slog.DiscardHandler), false, nil)
	made := New(host, func() *config.Config { return c })
	if begin, err := made.Start(t.Context()); begin != nil || err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, one := range made.Calls() {
		if one.Scope != 0 && one.Pattern != "GET /api/v1/me" {
			t.Errorf("%s needs a scope: the page could not ask for a token", one.Pattern)
		}
		mux.Handle(one.Pattern, one.Handler)
	}
	return mux
}

func send(t *testing.T, h http.Handler, method, target string, fields ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:9902"+target, http.NoBody)
	for n := 0; n+1 < len(fields); n += 2 {
		r.Header.Set(fields[n], fields[n+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestFiles: every file has its type, a tag, and the fields that protect the page. So have refusals.
func TestFiles(t *testing.T) {
	t.Parallel()
	h := served(t, &config.Config{})
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", "html": "text/html; charset=utf-8"}
	seen := 0
	err := fs.WalkDir(files, "web", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		seen++
		got := send(t, h, http.MethodGet, Path+strings.TrimPrefix(name, "web/"))
		kind := kinds[regexp.MustCompile(`\.?\w+$`).FindString(name)]
		if kind == "" {
			kind = kinds["html"]
		}
		if got.Code != http.StatusOK || got.Header().Get("Content-Type") != kind || got.Header().Get("ETag") == "" {
			t.Errorf("%s: %d %v, want the type %s", name, got.Code, got.Header(), kind)
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatalf("%d files, %v", seen, err)
	}
	for _, row := range []struct {
		method, target string
		status         int
	}{
		{http.MethodGet, Path, http.StatusOK},
		{http.MethodHead, Path + "app.js", http.StatusOK},
		{http.MethodPost, Path, http.StatusMethodNotAllowed},
		{http.MethodDelete, Path + "app.js", http.StatusMethodNotAllowed},
		{http.MethodGet, Path + "none.js", http.StatusNotFound},
		{http.MethodGet, Path + "web/app.js", http.StatusNotFound},
	} {
		got := send(t, h, row.method, row.target)
		if got.Code != row.status {
			t.Errorf("%s %s: %d, want %d", row.method, row.target, got.Code, row.status)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-cache", "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
		} {
			if got.Header().Get(name) != want {
				t.Errorf("%s %s: %s is %q, want %q", row.method, row.target, name, got.Header().Get(name), want)
			}
		}
	}
}

// TestTag: a browser that has a file gets no second copy.
func TestTag(t *testing.T) {
	t.Parallel()
	h := served(t, &config.Config{})
	tag := send(t, h, http.MethodGet, Path+"app.js").Header().Get("ETag")
	if again := send(t, h, http.MethodGet, Path+"app.js", "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("with the tag of the file: %d with %d bytes", again.Code, again.Body.Len())
	}
	if other := send(t, h, http.MethodGet, Path+"style.css", "If-None-Match", tag); other.Code != http.StatusOK {
		t.Errorf("with the tag of another file: %d", other.Code)
	}
}

// TestOff: admin.console off takes effect at once, as after a reload.
func TestOff(t *testing.T) {
	t.Parallel()
	c := &config.Config{}
	h := served(t, c)
	if got := send(t, h, http.MethodGet, "/"); got.Code != http.StatusFound || got.Header().Get("Location") != Path {
		t.Errorf("/ leads to %d %q", got.Code, got.Header().Get("Location"))
	}
	c.Admin.Console.Off = true
	for _, target := range []string{"/", Path, Path + "app.js"} {
		if got := send(t, h, http.MethodGet, target); got.Code != http.StatusNotFound {
			t.Errorf("%s of a console that is off: %d", target, got.Code)
		}
	}
}

// TestMe: without auth, a caller of loopback may do all but administer a listener that others reach, and the page offers actions only where
// the configuration says so. The tests of the application have the callers with tokens.
func TestMe(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		admin   config.Admin
		actions bool
	}{
		{config.Admin{}, false},
		{config.Admin{Console: config.Console{Actions: true}}, true},
		{config.Admin{Auth: config.AuthToken}, true},
		{config.Admin{Auth: config.AuthToken, Console: config.Console{Off: true}}, false},
	} {
		var got admin.Me
		answer := send(t, served(t, &config.Config{Instance: "shop-1", Admin: row.admin}), http.MethodGet, "/api/v1/me")
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		want := admin.Me{Scopes: []string{"decide", "send_limits", "read", "lease"}, Instance: "shop-1", Actions: row.actions}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: got %+v, want %+v", row.admin, got, want)
		}
	}
}

// TestOtherSites: a link of another site opens the page in a tab. Frames, scripts and images of other sites get nothing.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	h := served(t, &config.Config{})
	for _, row := range []struct {
		fields []string
		status int
	}{
		{nil, http.StatusOK},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, http.StatusOK},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, http.StatusForbidden},
		{[]string{"Origin", "http://evil.example"}, http.StatusForbidden},
	} {
		if got := send(t, h, http.MethodGet, Path, row.fields...); got.Code != row.status {
			t.Errorf("%v: %d, want %d", row.fields, got.Code, row.status)
		}
	}
}

// TestWeight: an operator opens the page over a slow line.
func TestWeight(t *testing.T) {
	t.Parallel()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for name, one := range all {
		if name == "" {
			continue // is index.html
		}
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(one.content)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		total += packed.Len()
	}
	t.Logf("%d bytes", total)
	if total > maxWeight {
		t.Errorf("the page has %d bytes, at most %d are allowed", total, maxWeight)
	}
}

// TestOwnFilesOnly: no file names another place, makes HTML of a text, or runs one.
func TestOwnFilesOnly(t *testing.T) {
	t.Parallel()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	forbidden := regexp.MustCompile(`https?://[^w]|https?://w[^w]|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|javascript:|document\.cookie`)
	for name, one := range all {
		if found := forbidden.Find(one.content); found != nil {
			t.Errorf("%s has %s", name, found)
		}
	}
}
