package http

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

const document = `{"plans": {"free": {"quotas": {}}}, "customers": {"acme": {"plan": "free"}}}`

// received is what a source gave: a change, a failure or the news that all was read.
type received struct {
	change *source.Change
	err    error
}

type receiver chan received

func (r receiver) Changed(c source.Change) { r <- received{change: &c} }
func (r receiver) Reached(time.Time)       { r <- received{} }
func (r receiver) Failed(err error)        { r <- received{err: err} }

// follow follows a URL, and gives what it says.
func follow(t *testing.T, url string, header func() (nethttp.Header, error)) receiver {
	t.Helper()
	s, err := Open(Config{URL: url, Interval: 10 * time.Millisecond, Timeout: time.Minute, Header: header})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	to, ended := make(receiver), make(chan struct{})
	go func() { s.Follow(ctx, to); close(ended) }()
	t.Cleanup(func() {
		cancel()
		for {
			select {
			case <-to:
			case <-ended:
				_ = s.Close()
				return
			}
		}
	})
	return to
}

// TestConditional: the first read gives all objects, an unchanged document gives nothing, and the request is conditional.
func TestConditional(t *testing.T) {
	reads := 0
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		reads++
		switch {
		case reads > 3:
			w.Header().Set("ETag", `"2"`)
			_, _ = fmt.Fprint(w, `{"plans": {}, "customers": {}}`)
		case r.Header.Get("If-None-Match") == `"1"`:
			w.WriteHeader(nethttp.StatusNotModified)
		default:
			if r.Header.Get("Authorization") != "Bearer x" {
				w.WriteHeader(nethttp.StatusForbidden)
			}
			w.Header().Set("ETag", `"1"`)
			_, _ = fmt.Fprint(w, document)
		}
	}))
	defer server.Close()
	to := follow(t, server.URL, func() (nethttp.Header, error) { return nethttp.Header{"Authorization": {"Bearer x"}}, nil })
	first := <-to
	if first.change == nil || !first.change.All || len(first.change.Objects) != 2 || first.change.Objects[1].Text != `{"plan": "free"}` {
		t.Fatalf("got %+v, want both objects", first)
	}
	for n := range 3 {
		if next := <-to; next.change != nil || next.err != nil {
			t.Fatalf("read %d: got %+v, want that everything was read", n, next)
		}
	}
	if next := <-to; next.change == nil || len(next.change.Objects) != 0 || next.change.Revision == first.change.Revision {
		t.Errorf("after the change: got %+v", next)
	}
}

// TestFaultyDocument: a document that cannot be read stays a failure while it does not change, and is asked for only if it did.
// The former document is given again when it comes back.
func TestFaultyDocument(t *testing.T) {
	answers := []string{document, "no document", "no document", document}
	var asked []string
	n := -1
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		n = min(n+1, len(answers)-1)
		asked = append(asked, r.Header.Get("If-None-Match"))
		etag := fmt.Sprintf("%q", fmt.Sprint(len(answers[n])))
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(nethttp.StatusNotModified)
			return
		}
		_, _ = fmt.Fprint(w, answers[n])
	}))
	defer server.Close()
	s, err := Open(Config{URL: server.URL, Interval: time.Hour, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := make(receiver, 9)
	for read, fails := range []bool{false, true, true, false} {
		if err := s.read(t.Context(), to); (err != nil) != fails || (s.refused != nil) != fails {
			t.Errorf("read %d: got %v, want a failure: %v", read, err, fails)
		}
	}
	if got, want := fmt.Sprint(asked), fmt.Sprintf(`[ "%d" "11" "11"]`, len(document)); got != want || len(to) != 2 {
		t.Errorf("it asked for changes of %s, want %s, and gave %d changes, want 2", got, want, len(to))
	}
}

// TestHostileServers: no answer but a complete document changes anything, and each failure says what to do.
func TestHostileServers(t *testing.T) {
	elsewhere := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = fmt.Fprint(w, document) }))
	defer elsewhere.Close()
	raw := func(text string) nethttp.HandlerFunc {
		return func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			conn, _, _ := w.(nethttp.Hijacker).Hijack()
			_, _ = conn.Write([]byte(text))
			_ = conn.(*net.TCPConn).CloseWrite()
			_ = conn.Close()
		}
	}
	for _, row := range []struct {
		name    string
		handler nethttp.HandlerFunc
		want    string
	}{
		{"a broken server", func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.WriteHeader(nethttp.StatusInternalServerError) }, "answers 500"},
		{"not modified at first", func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.WriteHeader(nethttp.StatusNotModified) }, "answers 304"},
		{"a part only", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.WriteHeader(nethttp.StatusPartialContent)
			_, _ = fmt.Fprint(w, document)
		}, "answers 206"},
		{"cut off by length", raw("HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\ncustomers:\n  acme: {plan: free}\n"), "closed the connection within the document"},
		{"cut off in a chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\ncustomers:\n  acme: {plan: free}\n"), "closed the connection within"},
		{"no length", raw("HTTP/1.1 200 OK\r\n\r\ncustomers:\n  acme: {plan: free}\n"), "without Content-Length"},
		{"no HTTP", raw("SSH-2.0-x\r\n"), "malformed HTTP"},
		{"an endless header", raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"), "header"},
		{"no document", func(_ nethttp.ResponseWriter, _ *nethttp.Request) {}, "neither JSON nor YAML"},
		{"a page", func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = fmt.Fprint(w, "<html>login</html>") }, "is not a mapping"},
		{"an error in JSON", func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = fmt.Fprint(w, `{"error": "x"}`) }, `has the field "error"`},
		{"an empty mapping", func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = fmt.Fprint(w, `{}`) }, "none of rules, plans and customers"},
		{"half of JSON", func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = fmt.Fprint(w, document[:60]) }, "neither JSON nor YAML"},
		{"a bomb", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			block := make([]byte, 1<<20)
			for range MaxDocument>>20 + 1 {
				_, _ = z.Write(block)
			}
			_ = z.Close()
		}, "is larger than 64 MiB"},
		{"another host", func(w nethttp.ResponseWriter, r *nethttp.Request) {
			nethttp.Redirect(w, r, elsewhere.URL, nethttp.StatusFound)
		}, "redirects to another host"},
		{"a circle", func(w nethttp.ResponseWriter, r *nethttp.Request) {
			nethttp.Redirect(w, r, "/x"+r.URL.Path, nethttp.StatusFound)
		}, "more than 3 redirects"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := httptest.NewServer(row.handler)
			defer server.Close()
			got := <-follow(t, server.URL+"/?token=secret", nil)
			if got.err == nil || !strings.Contains(got.err.Error(), row.want) {
				t.Errorf("got %+v, want an error with %q", got, row.want)
			}
			if got.err != nil && strings.Contains(got.err.Error(), "secret") {
				t.Errorf("the error has the query: %v", got.err)
			}
		})
	}
}

// TestSlowServer: a document that does not arrive within the timeout is a failure.
func TestSlowServer(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Length", "90")
		_, _ = fmt.Fprint(w, "customers:\n")
		w.(nethttp.Flusher).Flush()
		<-stop
	}))
	defer server.Close()
	defer close(stop)
	s, err := Open(Config{URL: server.URL, Interval: time.Second, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.read(t.Context(), make(receiver)); err == nil || !strings.Contains(err.Error(), "did not send the whole document within 1s") {
		t.Errorf("got %v", err)
	}
}

// TestLostSections: a section that had objects and is missing or null refuses the document. An empty one deletes its objects.
func TestLostSections(t *testing.T) {
	const both = `{"plans": {"free": {}}, "customers": {"a": {}, "b": {}}}`
	text := ""
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = fmt.Fprint(w, text) }))
	defer server.Close()
	open := func() *Source {
		s, err := Open(Config{URL: server.URL, Interval: time.Second, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, to := open(), make(receiver, 20) // It has capacity for all changes, so that no read waits.
	for _, row := range []struct {
		text, want string
		objects    int
	}{
		{`{"plans": {"free": {}}, "customers": null}`, "", 1}, // There were no customers before.
		{both, "", 3},
		{`{"plans": {"free": {}}, "customers": null}`, "the document has no customers, and had 2 before: write customers: {}", 0},
		{"plans: {free: {}}\ncustomers:\n", "the document has no customers, and had 2 before: write customers: {}", 0},
		{`{"customers": {"a": {}}}`, "the document has no plans, and had 1 before: write plans: {}", 0},
		{both, "", 3},
		{`{"plans": {"free": {}}, "customers": {}}`, "", 1},
		{`{"plans": {"free": {}}}`, "", 1},
		{`{"plans": {}, "rules": [{"name": "a", "key": ["ip"]}]}`, "", 1},
		{`{"plans": {}, "rules": null}`, "the document has no rules, and had 1 before: write rules: {}", 0},
		{`{"plans": {}, "rules": []}`, "", 0},
	} {
		text = row.text
		err := s.read(t.Context(), to)
		if row.want != "" {
			if err == nil || !strings.Contains(err.Error(), row.want) || len(to) > 0 {
				t.Errorf("%s: got %v, want %s", row.text, err, row.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(row.text, err)
		}
		if got := <-to; len(got.change.Objects) != row.objects {
			t.Errorf("%s: got %+v, want %d objects", row.text, got.change, row.objects)
		}
	}
	again := open()
	again.Had(source.Customer, 7)
	text = `{"plans": {}}`
	if err := again.read(t.Context(), to); err == nil || !strings.Contains(err.Error(), "had 7 before") {
		t.Errorf("after a cache with customers: got %v", err)
	}
}

// TestParse: JSON and YAML give the same objects, and a document that is not one says why.
func TestParse(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"YAML", "version: 1\nrules:\n  - {name: a, key: [ip]}\nplans:\n  free:\n    quotas: {}\ncustomers:\n", "rules/a={name: a, key: [ip]} plans/free=quotas: {}"},
		{"JSON", `{"version": 1, "rules": [{"name": "a", "key": ["ip"]}], "customers": {"b": {}}}`, `rules/a={"name": "a", "key": ["ip"]} customers/b={}`},
		{"rules by name", `{"rules": {"a": {"key": ["ip"]}}}`, `rules/a={"key": ["ip"]}`},
		{"flow of YAML", `{customers: {a: {plan: x}}}`, "customers/a={plan: x}"},
		{"empty sections", `{"customers": null, "rules": null, "plans": {"a": {}}}`, `plans/a={}`},
		{"empty sections in YAML", "customers: null\nrules: ~\nplans: {a: {}}\n", `plans/a={}`},
		{"a name twice", `{"customers": {"a": {}, "a": {}}}`, "customers/a is in the document twice: remove one of them"},
		{"a section twice", `{"customers": {}, "customers": {}}`, `the document has "customers" twice: write it once`},
		{"a section twice in YAML", "customers: {}\ncustomers: {}\n", `the document has "customers" twice: write it once`},
		{"two documents", `{"customers": {}} {}`, "the document is neither JSON nor YAML: *"},
		{"a rule without a name", "rules: [{key: [ip]}]", "a rule of the list has no name: give each one"},
		{"an alias", "customers: {a: &x {plan: free}, b: *x}", "customers/a has an alias or an anchor: write the values out"},
		{"a list of customers", "customers: [a]", "customers is not a mapping: *"},
		{"stores", "store: memory", `the document has the field "store", and a source has only rules, plans and customers: *`},
		{"large YAML", "#" + strings.Repeat(" ", MaxYAML), "the document is larger than 16 MiB and is not JSON: send JSON"},
		{"many values in YAML", "customers: {a: [" + strings.Repeat(",", maxSeparators), "the document has more than 3000000 separators of values and is not JSON: send JSON"},
	} {
		objects, err := Parse([]byte(row.text))
		var all []string
		for _, o := range objects {
			all = append(all, o.Key.String()+"="+o.Text)
		}
		got := strings.Join(all, " ")
		if err != nil {
			got = err.Error()
		}
		if prefix, open := strings.CutSuffix(row.want, "*"); got != row.want && (!open || !strings.HasPrefix(got, prefix)) {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// FuzzParse: no document makes the parser fail in another way than by an error, and a JSON document is never read as a smaller one.
func FuzzParse(f *testing.F) {
	f.Add([]byte(document))
	f.Add([]byte("customers: {a: {}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := Parse(text)
		if err != nil && objects != nil {
			t.Errorf("%q: objects beside the error %v", text, err)
		}
	})
}

func ExampleParse() {
	objects, err := Parse([]byte(document))
	fmt.Println(err)
	for _, o := range objects {
		fmt.Println(o.Key, o.Text)
	}
	// Output:
	// <nil>
	// plans/free {"quotas": {}}
	// customers/acme {"plan": "free"}
}

// TestJitter: two reads are at most the interval apart, and instances do not read together.
func TestJitter(t *testing.T) {
	const d = 10 * time.Second
	shortest, longest := d, time.Duration(0)
	for range 1000 {
		got := jittered(d)
		shortest, longest = min(shortest, got), max(longest, got)
	}
	if shortest < 8*time.Second || longest > d || longest-shortest < time.Second {
		t.Errorf("got %v to %v, want times between 8s and 10s", shortest, longest)
	}
}

// TestLastModified: without an ETag, the requests are conditional by the time of the document.
func TestLastModified(t *testing.T) {
	const modified = "Wed, 21 Oct 2015 07:28:00 GMT"
	var asked []string
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		asked = append(asked, r.Header.Get("If-Modified-Since"))
		w.Header().Set("Last-Modified", modified)
		if len(asked) > 1 && r.Header.Get("If-Modified-Since") == modified {
			w.WriteHeader(nethttp.StatusNotModified)
			return
		}
		_, _ = fmt.Fprint(w, document)
	}))
	defer server.Close()
	s, err := Open(Config{URL: server.URL, Interval: time.Hour, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := make(receiver, 9)
	for range 3 {
		if err := s.read(t.Context(), to); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"", modified, modified}; !slices.Equal(asked, want) || len(to) != 1 {
		t.Errorf("it asked for changes since %q, want %q, and gave %d changes, want 1", asked, want, len(to))
	}
}

// TestChangesWithinASecond: without an ETag, a document changes twice in one second. Both changes are seen.
func TestChangesWithinASecond(t *testing.T) {
	const modified, sent, later = "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:01 GMT"
	rows := []struct{ asked, date, body string }{
		{"", sent, document},
		{"", sent, `{"plans": {}, "customers": {}}`},
		{"", later, `{"plans": {}, "customers": {}}`},
		{modified, later, ""},
	}
	n := 0
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		row := rows[n]
		if n++; r.Header.Get("If-Modified-Since") != row.asked {
			t.Errorf("request %d asks for changes since %q, want %q", n, r.Header.Get("If-Modified-Since"), row.asked)
		}
		w.Header().Set("Last-Modified", modified)
		w.Header().Set("Date", row.date)
		if r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(nethttp.StatusNotModified)
			return
		}
		_, _ = fmt.Fprint(w, row.body)
	}))
	defer server.Close()
	s, err := Open(Config{URL: server.URL, Interval: time.Hour, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	to := make(receiver, len(rows))
	for range rows {
		if err := s.read(t.Context(), to); err != nil {
			t.Fatal(err)
		}
	}
	if len(to) != 2 {
		t.Errorf("it gave %d changes, want 2", len(to))
	}
	for date, want := range map[string]string{later: modified, sent: "", "": "", "x": ""} {
		if got := strongDate(nethttp.Header{"Last-Modified": {modified}, "Date": {date}}); got != want {
			t.Errorf("with the date %q: got %q, want %q", date, got, want)
		}
	}
}

// TestRedirects: three redirects on the same host are followed, with the headers of the configuration. Another scheme of the
// same host is another host.
func TestRedirects(t *testing.T) {
	var paths []string
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		paths = append(paths, r.URL.Path+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/3":
			_, _ = fmt.Fprint(w, document)
		case "/secure":
			nethttp.Redirect(w, r, "https://"+r.Host+"/3", nethttp.StatusFound)
		default:
			nethttp.Redirect(w, r, fmt.Sprint("/", r.URL.Path[1]-'0'+1), nethttp.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	read := func(path string) error {
		s, err := Open(Config{URL: server.URL + path, Interval: time.Hour, Timeout: time.Minute, Header: func() (nethttp.Header, error) {
			return nethttp.Header{"Authorization": {"x"}}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.read(t.Context(), make(receiver, 1))
	}
	if err := read("/0"); err != nil || strings.Join(paths, ", ") != "/0 x, /1 x, /2 x, /3 x" {
		t.Errorf("got %v by way of %q", err, paths)
	}
	if err := read("/secure"); err == nil || !strings.Contains(err.Error(), "redirects to another host") {
		t.Errorf("to another scheme: got %v", err)
	}
}

// TestAuthorities: a server whose certificate is of an authority of the configuration is read, and another server is not.
func TestAuthorities(t *testing.T) {
	server := httptest.NewTLSServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = fmt.Fprint(w, document) }))
	defer server.Close()
	known := x509.NewCertPool()
	known.AddCert(server.Certificate())
	for _, row := range []struct {
		pool *x509.CertPool
		want string
	}{{known, ""}, {x509.NewCertPool(), "certificate"}} {
		s, err := Open(Config{URL: server.URL, Interval: time.Hour, Timeout: time.Minute, TLS: &tls.Config{RootCAs: row.pool, MinVersion: tls.VersionTLS12}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.read(t.Context(), make(receiver, 1))
		if fails := row.want != ""; fails != (err != nil) || fails && !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want an error with %q", err, row.want)
		}
		_ = s.Close()
	}
}
