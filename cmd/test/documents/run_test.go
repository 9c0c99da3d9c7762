package documents

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/middleware/httplimit"
)

// documentsTable maps documents to their minimum number of requests.
var documentsTable = map[string]int{"rules.md": 60, "cloud-armor.md": 40, "quotas.md": 25, "metering.md": 4}

func TestDocuments(t *testing.T) {
	files := newIdentityFiles(t)
	for name, least := range documentsTable {
		t.Run(name, func(t *testing.T) {
			made := 0
			for _, e := range readExamples(t, filepath.Join("..", "..", "..", "docs", name)) {
				made += len(e.lines)
				t.Run(filepath.Base(e.place), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { e.run(t, files) })
				})
			}
			if made < least {
				t.Errorf("%d lines of requests were found, want at least %d: check that the blocks are marked requests", made, least)
			}
		})
	}
}

// run makes the requests of an example one after another.
func (e *example) run(t *testing.T, files *identityFiles) {
	t.Helper()
	text := e.config
	if !strings.HasPrefix(text, "version:") {
		text = "version: 1\n" + text
	}
	c, err := config.Parse(e.place, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c.MaxMemory = 4 << 20
	files.use(&c.Identity)
	// The bubble's clock advances to a full hour, so that fixed windows start with the example.
	<-time.After(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
	g, err := open.Guard(c)
	if err != nil {
		t.Fatalf("%s: %v", e.place, err)
	}
	for i := range e.lines {
		l := &e.lines[i]
		<-time.After(l.pause)
		for range l.times {
			if l.method != "" {
				l.make(t, g, files)
			}
		}
	}
}

// make makes one request and compares the result.
func (l *line) make(t *testing.T, g *guard.Guard, files *identityFiles) {
	t.Helper()
	var seen http.Header
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		status := http.StatusOK
		for name, values := range r.Header {
			switch stated, found := strings.CutPrefix(name, "Answer-"); {
			case found && stated == "Status":
				status, _ = strconv.Atoi(values[0])
			case found:
				w.Header()[stated] = values
			}
		}
		w.WriteHeader(status)
	})
	r := l.request(t, files)
	w := httptest.NewRecorder()
	began := time.Now()
	httplimit.New(g, httplimit.Options{ResolvePath: true})(service).ServeHTTP(w, r)
	if elapsed := time.Since(began).Round(10 * time.Millisecond); elapsed != l.waits {
		t.Errorf("%s: the request waits %v, want %v", l.place, elapsed, l.waits)
	}
	if w.Code != l.status {
		t.Errorf("%s: status %d, want %d: %s %v", l.place, w.Code, l.status, w.Body, w.Header())
	}
	for _, field := range l.want {
		from := w.Header()
		if rest, service := strings.CutPrefix(field, "service "); service {
			field, from = rest, seen
		}
		name, value, _ := strings.Cut(field, ":")
		if got := strings.Join(from.Values(name), ", "); got != strings.TrimSpace(value) {
			t.Errorf("%s: %s is %q, want %q", l.place, name, got, strings.TrimSpace(value))
		}
	}
}

func (l *line) request(t *testing.T, files *identityFiles) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), l.method, "http://api.example.com"+l.target, http.NoBody)
	r.RemoteAddr = cmpOr(l.from, "198.51.100.1") + ":40000"
	if strings.Contains(l.from, ":") {
		r.RemoteAddr = "[" + l.from + "]:40000"
	}
	if l.as != "" {
		certificate := &x509.Certificate{Subject: pkix.Name{CommonName: strings.TrimPrefix(l.as, "CN=")}}
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
	}
	for _, field := range l.headers {
		name, value, found := strings.Cut(field, ":")
		if !found {
			t.Fatalf("%s: %q is not a header: write Name: value", l.place, field)
		}
		value = files.fill(t, strings.TrimSpace(value))
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return r
}
