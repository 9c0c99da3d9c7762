package dogma_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace/dogma"
)

// entryOf returns an entry as the server writes it.
func entryOf(revision, content string) string {
	return fmt.Sprintf(`{"revision":%s,"path":%q,"type":"JSON","content":%s,"url":"/"}`, revision, document, content)
}

// says returns a handler that answers with a status, a content type and a text.
func says(status int, kind, text string) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text)) // The client may stop reading.
		return true
	}
}

// TestHostileAnswers answers watches with invalid answers. Each answer causes a fault with
// its cause, and changes no plan. The source continues when the server recovers.
func TestHostileAnswers(t *testing.T) {
	const kind = "application/json; charset=utf-8"
	watched := func(revision, content string) string {
		return fmt.Sprintf(`{"revision":%s,"entry":%s}`, revision, entryOf(revision, content))
	}
	for name, c := range map[string]struct {
		instead func(w http.ResponseWriter, r *http.Request) bool
		want    string
	}{
		"an HTML page":           {says(200, "text/html", "<html>log in</html>"), "text/html"},
		"no content type":        {says(200, "", watched("9", documentOf(9))), "check that URL leads to Central Dogma"},
		"a long content type":    {says(200, strings.Repeat("x", 5000), "{}"), "check that URL leads to Central Dogma"},
		"an empty body":          {says(200, kind, ""), "valid entry"},
		"a truncated body":       {says(200, kind, watched("9", documentOf(9))[:90]), "valid entry"},
		"data after the answer":  {says(200, kind, watched("9", documentOf(9))+"{}"), "valid entry"},
		"deep nesting":           {says(200, kind, strings.Repeat("[", 60_000)), "valid entry"},
		"a list":                 {says(200, kind, "["+watched("9", documentOf(9))+"]"), "valid entry"},
		"no entry":               {says(200, kind, `{"revision":9}`), "one file"},
		"an entry of null":       {says(200, kind, `{"revision":9,"entry":null}`), "one file"},
		"the answer of a read":   {says(200, kind, entryOf("9", documentOf(9))), "one file"},
		"no revision":            {says(200, kind, `{"entry":`+entryOf("9", documentOf(9))+`}`), "one file"},
		"revision 0":             {says(200, kind, watched("0", documentOf(9))), "one file"},
		"revision -1":            {says(200, kind, watched("-1", documentOf(9))), "one file"},
		"a huge revision":        {says(200, kind, watched("2147483648", documentOf(9))), "one file"},
		"revision 1e3":           {says(200, kind, watched("1e3", documentOf(9))), "valid entry"},
		"a revision as a string": {says(200, kind, watched(`"9"`, documentOf(9))), "valid entry"},
		"an old revision":        {says(200, kind, watched("1", documentOf(9))), "answered with revision"},
		"the same revision":      {says(200, kind, watched("2", documentOf(9))), "answered with revision"},
		"another file":           {says(200, kind, strings.ReplaceAll(watched("9", documentOf(9)), "mail", "sms")), "one file"},
		"a text file":            {says(200, kind, strings.Replace(watched("9", `"x"`), "JSON", "TEXT", 1)), `"TEXT"`},
		"a directory":            {says(200, kind, strings.Replace(watched("9", `null`), "JSON", "DIRECTORY", 1)), `"DIRECTORY"`},
		"no content":             {says(204, kind, ""), "204"},
		"forbidden":              {says(403, kind, `{"message":"no"}`), "active token"},
		"an HTML error page":     {says(502, "text/html", "<html>bad gateway</html>"), "502"},
		"a long message":         {says(500, kind, `{"message":"`+strings.Repeat("\\u0007", 9000)+`"}`), "500"},
		"too many requests":      {says(429, kind, `{}`), "429"},
		"no connection":          {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, "did not answer"},
		"a connection that breaks": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Length", "500")
			_, _ = w.Write([]byte(`{"revision":9,"entry":`))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "unexpected EOF"},
		"no HTTP": {func(w http.ResponseWriter, r *http.Request) bool {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return false
			}
			_, _ = conn.Write([]byte("+OK " + r.Header.Get("Authorization") + strings.Repeat("x", 2000) + "\r\n\r\n"))
			_ = conn.Close()
			return true
		}, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := serving(t)
				cfg := configOf(m)
				cfg.Wait = 5 * time.Second
				seen, _ := follow(t, cfg)
				s.answers(func(w http.ResponseWriter, r *http.Request) bool {
					return r.Header.Get("If-None-Match") != "" && c.instead(w, r)
				})
				pass(30 * time.Second)
				troubles := seen.troubles()
				if n := len(troubles); n < 3 || n > 5 {
					t.Fatalf("got %d faults in 30 s, want 3 to 5: %v", n, troubles)
				}
				for _, f := range troubles {
					if !strings.Contains(f.text, c.want) || strings.Contains(f.text, "appToken") || len(f.text) > 800 {
						t.Errorf("got a fault of %d bytes: %q, want %q in it, no token, and at most 800 bytes", len(f.text), f.text, c.want)
					}
				}
				seen.want(t, len(troubles), 100)
				s.answers(nil)
				s.commit(document, documentOf(200))
				pass(time.Minute)
				seen.want(t, len(troubles), 100, 200)
			})
		})
	}
}

// TestHostileFirstAnswers answers the first read with invalid answers, or with a watch's.
func TestHostileFirstAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		text, want string
	}{
		"not modified":          {304, "", "304"},
		"the answer of a watch": {200, `{"revision":9,"entry":` + entryOf("9", documentOf(9)) + `}`, "one file"},
		"a listing":             {200, "[]", "valid entry"},
		"an empty body":         {200, "", "valid entry"},
		"no content":            {204, "", "204"},
		"no revision":           {200, entryOf("0", documentOf(9)), "one file"},
		"another file":          {200, strings.ReplaceAll(entryOf("9", documentOf(9)), "mail", "sms"), "one file"},
		"a text file":           {200, strings.ReplaceAll(entryOf("9", `"x"`), "JSON", "TEXT"), `"TEXT"`},
		"a refused token":       {401, `{"message":"You must be logged in."}`, "active token"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := serving(t)
				s.answers(says(c.status, "application/json", c.text))
				seen, _ := follow(t, configOf(m))
				seen.want(t, 1)
				if got := seen.troubles()[0].text; !strings.Contains(got, c.want) {
					t.Errorf("got the fault %q, want %q in it", got, c.want)
				}
			})
		})
	}
}

// TestEndlessBody checks that the source stops reading at the maximum length of an answer.
func TestEndlessBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		var written atomic.Int64
		s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			for {
				n, err := w.Write([]byte(strings.Repeat(" ", 4096)))
				written.Add(int64(n))
				if err != nil {
					return true
				}
			}
		})
		seen, _ := follow(t, configOf(m))
		seen.want(t, 1)
		if got := seen.troubles()[0].text; !strings.Contains(got, "more than 65536 bytes: use JSONPath") {
			t.Errorf("got the fault %q, want the maximum length and JSONPath in it", got)
		}
		if got := written.Load(); got > 128<<10 {
			t.Errorf("the source read %d bytes, want at most 128 KiB", got)
		}
	})
}

// TestSlowBody checks that a very slow answer times out.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		c := configOf(m)
		c.Wait = 20 * time.Second
		seen, _ := follow(t, c)
		pass(30 * time.Second)
		began := make(chan time.Time, 10)
		s.answers(func(w http.ResponseWriter, r *http.Request) bool {
			began <- time.Now()
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(time.Second):
				}
			}
			return true
		})
		pass(55 * time.Second)
		troubles := seen.troubles()
		if len(troubles) == 0 || !strings.Contains(troubles[0].text, "no complete answer within 25s") {
			t.Fatalf("a slow body caused the faults %v, want a timeout first", troubles)
		}
		if elapsed := troubles[0].at.Sub(<-began); elapsed != 25*time.Second {
			t.Errorf("the slow answer timed out after %v, want 25s", elapsed)
		}
	})
}

// TestSilentServer checks that a read without an answer times out.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		began := time.Now()
		s.answers(func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		})
		seen, _ := follow(t, configOf(m))
		pass(20 * time.Second)
		troubles := seen.troubles()
		if len(troubles) != 1 || troubles[0].at.Sub(began) != 15*time.Second {
			t.Errorf("a read without an answer caused the faults %v, want one after 15s", troubles)
		}
	})
}

// TestStorms has a server that answers each watch at once, without a change or with a new
// version. The source then sends at most one request a second.
func TestStorms(t *testing.T) {
	for name, instead := range map[string]func() func(w http.ResponseWriter, r *http.Request) bool{
		"not modified": func() func(w http.ResponseWriter, r *http.Request) bool { return says(304, "", "") },
		"always new": func() func(w http.ResponseWriter, r *http.Request) bool {
			var revision atomic.Int64
			revision.Store(2)
			return func(w http.ResponseWriter, r *http.Request) bool {
				n := revision.Add(1)
				return says(200, "application/json",
					fmt.Sprintf(`{"revision":%d,"entry":%s}`, n, entryOf("1", documentOf(n))))(w, r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := serving(t)
				seen, _ := follow(t, configOf(m))
				s.answers(instead())
				before := len(s.requests())
				pass(10 * time.Minute)
				if n := len(s.requests()) - before; n < 530 || n > 600 {
					t.Errorf("got %d requests in 10 minutes, want 530 to 600", n)
				}
				if troubles := seen.troubles(); len(troubles) != 0 {
					t.Errorf("got the faults %v, want none", troubles)
				}
			})
		})
	}
}

// TestRedirects checks that a redirect is a fault, and that the source never follows it:
// not to another host, another port or another path.
func TestRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"http://elsewhere.test", "http://dogma.test:80", "http://sub.dogma.test:36462", "/login"} {
			t.Run(fmt.Sprint(status, " ", to), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, m := serving(t)
					var followed atomic.Int64
					other := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) })
					for _, host := range []string{"elsewhere.test:80", "dogma.test:80", "sub.dogma.test:36462"} {
						m.serve(t, host, other)
					}
					s.answers(func(w http.ResponseWriter, r *http.Request) bool {
						http.Redirect(w, r, to, status)
						return true
					})
					seen, _ := follow(t, configOf(m))
					seen.want(t, 1)
					if got := seen.troubles()[0].text; !strings.Contains(got, fmt.Sprint(status)) || !strings.Contains(got, "not followed") {
						t.Errorf("a redirect caused the fault %q, want its status and \"not followed\"", got)
					}
					if n := followed.Load(); n != 0 || len(s.requests()) != 1 {
						t.Errorf("other servers got %d requests and the server %d, want 0 and 1", n, len(s.requests()))
					}
				})
			})
		}
	}
}

// TestEchoes has a server that returns the token in each field that errors quote.
func TestEchoes(t *testing.T) {
	const token = "appToken-cafe"
	for name, instead := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"message":        says(500, "application/json", `{"message":"`+token+`"}`),
		"long message":   says(500, "application/json", `{"message":"`+strings.Repeat("x", 190)+token+`"}`),
		"content type":   says(200, "text/"+strings.Repeat("x", 45)+token, ""),
		"document":       says(200, "application/json", entryOf("9", `{"limit":"`+token+`","instances":1}`)),
		"document field": says(200, "application/json", entryOf("9", `{"`+strings.Repeat("x", 30)+token+`":1}`)),
		"type":           says(200, "application/json", strings.ReplaceAll(entryOf("9", "1"), "JSON", strings.Repeat("x", 10)+token)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := serving(t)
				s.answers(instead)
				seen, _ := follow(t, configOf(m))
				seen.want(t, 1)
				if got := seen.troubles()[0].text; strings.Contains(got, "appToken") || strings.Contains(got, "cafe") {
					t.Errorf("a fault contains the token: %q", got)
				}
			})
		})
	}
}

// failing is a transport that puts the complete request header into its errors.
type failing struct{}

func (failing) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.New("cannot send " + fmt.Sprint(r.Header) + strings.Repeat("x", 5000))
}

func TestTransportThatTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := serving(t)
		c := configOf(m)
		c.Client = &http.Client{Transport: failing{}}
		seen, _ := follow(t, c)
		seen.want(t, 1)
		if got := seen.troubles()[0].text; strings.Contains(got, "cafe") || !strings.Contains(got, "[token]") || len(got) > 800 {
			t.Errorf("got the fault %q, want [token] instead of the token, and at most 800 bytes", got)
		}
	})
}

// TestRestoredRepository restores the repository from a backup. The source ignores older
// revisions, and applies revisions after the newest one that it knows.
func TestRestoredRepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		for limit := range int64(5) {
			s.commit(document, documentOf(limit))
		}
		c := configOf(m)
		c.Wait = 5 * time.Second
		seen, _ := follow(t, c) // The source reads revision 7, with a limit of 4.
		s.restore(2)
		pass(time.Minute)
		faults := len(seen.troubles())
		if faults < 3 || !strings.Contains(seen.troubles()[0].text, "restored from a backup") ||
			!strings.Contains(seen.troubles()[1].text, "has revision 2, older than the known revision 7") {
			t.Fatalf("a restored repository caused the faults %v, want 3 or more with the cause", seen.troubles())
		}
		seen.want(t, faults, 4)
		// The new revision 7 differs from the old one, and has the content of revision 8.
		for range 6 {
			s.commit(document, documentOf(300))
		}
		pass(72 * time.Second)
		if plans := seen.plans(); len(plans) != 2 || plans[1].Plan.Limit != 300 || plans[1].Revision != 8 {
			t.Errorf("got the assignments %+v after the restore, want one with limit 300 and revision 8", plans[1:])
		}
	})
}

// TestNoWatches has a server or a proxy that refuses all watches. The source then reads the
// document about once a minute, and ignores commits to other files.
func TestNoWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		s.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Prefer") == "" {
				return false
			}
			refuse(w, http.StatusBadRequest, "", "invalid prefer header")
			return true
		})
		seen, _ := follow(t, configOf(m))
		pass(10 * time.Minute)
		before := len(s.requests())
		s.commit("/other.json", `{}`)
		pass(time.Hour)
		if n := len(s.requests()) - before; n > 150 {
			t.Errorf("got %d requests in an hour, want at most 150", n)
		}
		seen.want(t, len(seen.troubles()), 100)
		s.commit(document, documentOf(200))
		pass(80 * time.Second)
		seen.want(t, len(seen.troubles()), 100, 200)
	})
}

func TestConfigErrors(t *testing.T) {
	good := dogma.Config{URL: "https://dogma.test", Project: "p", Repository: "r", Path: "/d.json"}
	if _, err := dogma.New(good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(c *dogma.Config)
		want   string
	}{
		"no URL":                    {func(c *dogma.Config) { c.URL = "" }, "use the form"},
		"no scheme":                 {func(c *dogma.Config) { c.URL = "dogma.test:36462" }, "use the form"},
		"another scheme":            {func(c *dogma.Config) { c.URL = "ftp://dogma.test" }, "use the form"},
		"no host":                   {func(c *dogma.Config) { c.URL = "https://:36462" }, "use the form"},
		"a broken URL":              {func(c *dogma.Config) { c.URL = "http://user:hidden@[::1" }, "use the form"},
		"a token in the URL":        {func(c *dogma.Config) { c.URL = "https://user:hidden@dogma.test" }, "Token or TokenFile"},
		"a query":                   {func(c *dogma.Config) { c.URL = "https://dogma.test?x=1" }, "and port only"},
		"a fragment":                {func(c *dogma.Config) { c.URL = "https://dogma.test#x" }, "and port only"},
		"no project":                {func(c *dogma.Config) { c.Project = "" }, "must not be empty"},
		"no repository":             {func(c *dogma.Config) { c.Repository = "" }, "must not be empty"},
		"a project with a slash":    {func(c *dogma.Config) { c.Project = "a/b" }, "valid name"},
		"the repository ..":         {func(c *dogma.Config) { c.Repository = ".." }, "valid name"},
		"no path":                   {func(c *dogma.Config) { c.Path = "" }, "path of a JSON file"},
		"a path without /":          {func(c *dogma.Config) { c.Path = "d.json" }, "path of a JSON file"},
		"a text file":               {func(c *dogma.Config) { c.Path = "/d.txt" }, "path of a JSON file"},
		"a pattern":                 {func(c *dogma.Config) { c.Path = "/*.json" }, "valid name"},
		"two files":                 {func(c *dogma.Config) { c.Path = "/a.json,/b.json" }, "valid name"},
		"an empty folder name":      {func(c *dogma.Config) { c.Path = "//d.json" }, "must not be empty"},
		"the folder ..":             {func(c *dogma.Config) { c.Path = "/../d.json" }, "valid name"},
		"invalid UTF-8":             {func(c *dogma.Config) { c.Path = "/\xff.json" }, "valid name"},
		"a long path":               {func(c *dogma.Config) { c.Path = "/" + strings.Repeat("d", 5000) + ".json" }, "longer than 4096 bytes"},
		"a JSON path without $":     {func(c *dogma.Config) { c.JSONPath = "providers" }, "must begin with $"},
		"an index below -1":         {func(c *dogma.Config) { c.Index = -2 }, "-1 when"},
		"a wait of half a second":   {func(c *dogma.Config) { c.Wait = 500 * time.Millisecond }, "whole seconds"},
		"a wait of 1.5 seconds":     {func(c *dogma.Config) { c.Wait = 1500 * time.Millisecond }, "whole seconds"},
		"a negative wait":           {func(c *dogma.Config) { c.Wait = -time.Second }, "whole seconds"},
		"a wait of more than a day": {func(c *dogma.Config) { c.Wait = 24*time.Hour + time.Second }, "whole seconds"},
		"a short settle time":       {func(c *dogma.Config) { c.Settle = 999 * time.Millisecond }, "use a longer Settle"},
		"a negative settle time":    {func(c *dogma.Config) { c.Settle = -time.Second }, "use a longer Settle"},
		"a short HoldFor":           {func(c *dogma.Config) { c.HoldFor = 69 * time.Second }, "use at least 1m10s"},
		"a negative HoldFor":        {func(c *dogma.Config) { c.HoldFor = -1 }, "use at least"},
		"two tokens":                {func(c *dogma.Config) { c.Token, c.TokenFile = "a", "/b" }, "both set"},
		"a token of two lines":      {func(c *dogma.Config) { c.Token = "hidden\nX-Evil: 1" }, "byte 6"},
		"a long token":              {func(c *dogma.Config) { c.Token = strings.Repeat("h", 5000) }, "5000 bytes"},
		"no token file":             {func(c *dogma.Config) { c.TokenFile = t.TempDir() + "/none" }, "reading the token"},
		"a folder as token file":    {func(c *dogma.Config) { c.TokenFile = t.TempDir() }, "reading the token"},
	} {
		changed := good
		c.change(&changed)
		_, err := dogma.New(changed)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") || len(err.Error()) > 400 {
			t.Errorf("%s: got error %v, want %q in it, without the token", name, err, c.want)
		}
	}
}

// TestTokenIsNotPrinted prints a Config and a Source with all verbs.
func TestTokenIsNotPrinted(t *testing.T) {
	c := dogma.Config{URL: "https://dogma.test", Project: "p", Repository: "r", Path: "/d.json", JSONPath: "$.a", Token: "hidden"}
	source, err := dogma.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, what := range []any{c, &c, source, []any{c, source}} {
			if got := fmt.Sprintf(form, what); strings.Contains(got, "hidden") {
				t.Errorf("%s of a %T prints the token: %s", form, what, got)
			}
		}
	}
	if got, want := fmt.Sprint(source), "p/r/d.json on https://dogma.test at $.a"; got != want {
		t.Errorf("a source is printed as %q, want %q", got, want)
	}
}
