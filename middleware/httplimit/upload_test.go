package httplimit_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
)

// upload returns a form with one file of 11 MiB, more than receiver keeps in memory.
func upload(t *testing.T) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	file, err := w.CreateFormFile("file", "barley.bin")
	if err == nil {
		_, err = file.Write(make([]byte, 11<<20))
	}
	if err == nil {
		err = w.WriteField("name", "barley")
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), w.FormDataContentType()
}

// receiver parses forms and counts those with a file on disk.
type receiver struct {
	dir    string
	stored int
	panics bool
}

func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if files, _ := os.ReadDir(s.dir); len(files) > 0 {
		s.stored++
	}
	if s.panics {
		panic("after the form was parsed")
	}
	w.WriteHeader(http.StatusNoContent)
}

// outside is a handler around the middleware. It records what it sees of a request
// afterwards, and recovers from panics.
type outside struct {
	next          http.Handler
	pattern, name string
}

func (o *outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if recover() != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
		o.pattern, o.name = r.Pattern, r.FormValue("name")
	}()
	o.next.ServeHTTP(w, r)
}

// TestUploadsAreRemoved checks that uploaded files are removed, whatever makes httplimit
// forward a copy. An outer handler sees what the inner handlers have parsed.
func TestUploadsAreRemoved(t *testing.T) {
	body, contentType := upload(t)
	forged := http.Header{guard.FieldMark: {"forged"}}
	soft := func(r *guard.Rule) { r.Soft = 80 }
	for _, c := range []struct {
		name   string
		target string
		store  headgate.Store
		change func(*guard.Rule)
		header http.Header
		panics bool
	}{
		{"no copy", "/v1/product", allowed(), soft, nil, false},
		{"another path", "//v1//product", allowed(), soft, nil, false},
		{"a forged mark", "/v1/product", allowed(), soft, forged, false},
		{"above the soft limit", "/v1/product", nearly(), soft, nil, false},
		{"degraded", "/v1/product", denied(headgate.OverLimit, time.Second), degrade("X-Service-Level", "basic"), nil, false},
		{"another path, and a panic", "//v1//product", allowed(), soft, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			service := &receiver{dir: dir, panics: c.panics}
			mux := http.NewServeMux()
			mux.Handle("POST /v1/product", service)
			limited := httplimit.New(newGuard(t, c.store, product(t, c.change)), httplimit.Options{ResolvePath: true})
			around := &outside{next: limited(mux)}
			server := httptest.NewServer(around)
			defer server.Close()
			const uploads = 5
			for range uploads {
				post(t, server, c.target, contentType, c.header, body)
			}
			server.Close() // net/http removes the files after it has sent the response.
			if around.pattern != "POST /v1/product" || around.name != "barley" || service.stored != uploads {
				t.Errorf("the outer handler sees the pattern %q and the name %q; %d of %d forms had a file", around.pattern, around.name, service.stored, uploads)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%d files remain: %v, %v", len(left), left, err)
			}
		})
	}
}

// post sends a form to the server, with the target unchanged.
func post(t *testing.T, server *httptest.Server, target, contentType string, header http.Header, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = "//" + strings.TrimPrefix(server.URL, "http://") + target
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent && resp.StatusCode != http.StatusInternalServerError {
		t.Fatalf("POST %s: status %d", target, resp.StatusCode)
	}
}
