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

// entryOf is the JSON of an entry as the server has it.
func entryOf(revision, content string) string {
	return fmt.Sprintf(`{"revision":%s,"path":%q,"type":"JSON","content":%s,"url":"/"}`, revision, document, content)
}

// says answers with a text of a content type.
func says(status int, kind, text string) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text)) // The client may have enough of it.
		return true
	}
}

// TestHostileAnswers has answers to watches that no server should give. Each is a fault that says
// what it was, nothing of it is applied, and the source goes on when the server mends.
func TestHostileAnswers(t *testing.T) {
	const kind = "application/json; charset=utf-8"
	watched := func(revision, content string) string {
		return fmt.Sprintf(`{"revision":%s,"entry":%s}`, revision, entryOf(revision, content))
	}
	for name, c := range map[string]struct {
		instead func(w http.ResponseWriter, r *http.Request) bool
		want    string
	}{
		"a page":              {says(200, "text/html", "<html>log in</html>"), "text/html"},
		"no content type":     {says(200, "", watched("9", documentOf(9))), "does URL lead to Central Dogma"},
		"a long content type": {says(200, strings.Repeat("x", 5000), "{}"), "does URL lead to Central Dogma"},
		"nothing":             {says(200, kind, ""), "no entry"},
		"cut short":           {says(200, kind, watched("9", documentOf(9))[:90]), "no entry"},
		"something behind":    {says(200, kind, watched("9", documentOf(9))+"{}"), "no entry"},
		"deep nesting":        {says(200, kind, strings.Repeat("[", 60_000)), "no entry"},
		"a list":              {says(200, kind, "["+watched("9", documentOf(9))+"]"), "no entry"},
		"no entry":            {says(200, kind, `{"revision":9}`), "one file"},
		"an entry of null":    {says(200, kind, `{"revision":9,"entry":null}`), "one file"},
		"a read's answer":     {says(200, kind, entryOf("9", documentOf(9))), "one file"},
		"no revision":         {says(200, kind, `{"entry":`+entryOf("9", documentOf(9))+`}`), "one file"},
		"revision 0":          {says(200, kind, watched("0", documentOf(9))), "one file"},
		"revision -1":         {says(200, kind, watched("-1", documentOf(9))), "one file"},
		"a huge revision":     {says(200, kind, watched("2147483648", documentOf(9))), "one file"},
		"revision 1e3":        {says(200, kind, watched("1e3", documentOf(9))), "no entry"},
		"a revision in words": {says(200, kind, watched(`"9"`, documentOf(9))), "no entry"},
		"an old revision":     {says(200, kind, watched("1", documentOf(9))), "answered with revision"},
		"the same revision":   {says(200, kind, watched("2", documentOf(9))), "answered with revision"},
		"another file":        {says(200, kind, strings.ReplaceAll(watched("9", documentOf(9)), "mail", "sms")), "one file"},
		"a text file":         {says(200, kind, strings.Replace(watched("9", `"x"`), "JSON", "TEXT", 1)), `"TEXT"`},
		"a directory":         {says(200, kind, strings.Replace(watched("9", `null`), "JSON", "DIRECTORY", 1)), `"DIRECTORY"`},
		"no content":          {says(204, kind, ""), "204"},
		"forbidden":           {says(403, kind, `{"message":"no"}`), "token that is active"},
		"a page of an error":  {says(502, "text/html", "<html>bad gateway</html>"), "502"},
		"a long message":      {says(500, kind, `{"message":"`+strings.Repeat("\\u0007", 9000)+`"}`), "500"},
		"too many":            {says(429, kind, `{}`), "429"},
		"no connection":       {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, "cannot be asked"},
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
					t.Fatalf("in 30 s there are %d faults: %v", n, troubles)
				}
				for _, f := range troubles {
					if !strings.Contains(f.text, c.want) || strings.Contains(f.text, "appToken") || len(f.text) > 800 {
						t.Errorf("got a fault of %d bytes: %q, want %q in it", len(f.text), f.text, c.want)
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

// TestHostileFirstAnswers has answers to the first request that only a watch may get.
func TestHostileFirstAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		text, want string
	}{
		"not modified":     {304, "", "304"},
		"a watch's answer": {200, `{"revision":9,"entry":` + entryOf("9", documentOf(9)) + `}`, "one file"},
		"a listing":        {200, "[]", "no entry"},
		"nothing":          {200, "", "no entry"},
		"no content":       {204, "", "204"},
		"no revision":      {200, entryOf("0", documentOf(9)), "one file"},
		"another file":     {200, strings.ReplaceAll(entryOf("9", documentOf(9)), "mail", "sms"), "one file"},
		"a text file":      {200, strings.ReplaceAll(entryOf("9", `"x"`), "JSON", "TEXT"), `"TEXT"`},
		"a refused token":  {401, `{"message":"You must be logged in."}`, "token that is active"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := serving(t)
				s.answers(says(c.status, "application/json", c.text))
				seen, _ := follow(t, configOf(m))
				seen.want(t, 1)
				if got := seen.troubles()[0].text; !strings.Contains(got, c.want) {
					t.Errorf("the fault is %q, want %q in it", got, c.want)
				}
			})
		})
	}
}

// TestEndlessBody holds that no more is read than an answer may have.
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
			t.Errorf("the fault is %q", got)
		}
		if got := written.Load(); got > 128<<10 {
			t.Errorf("%d bytes were taken from the server", got)
		}
	})
}

// TestSlowBody holds that an answer which comes byte after byte is given up in time.
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
		if len(troubles) == 0 || !strings.Contains(troubles[0].text, "no whole answer came within 25s") {
			t.Fatalf("a slow body is the faults %v", troubles)
		}
		if took := troubles[0].at.Sub(<-began); took != 25*time.Second {
			t.Errorf("it was given up after %v", took)
		}
	})
}

// TestSilentServer holds that a connection on which nothing comes is given up in time.
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
			t.Errorf("a read that is not answered is the faults %v", troubles)
		}
	})
}

// TestStorms has a server that answers each watch at once, with nothing or with always
// another version: the source asks once a second and no more.
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
				before := len(s.questions())
				pass(10 * time.Minute)
				if n := len(s.questions()) - before; n < 530 || n > 600 {
					t.Errorf("%d requests in 10 minutes, the first of up to one minute", n)
				}
				if troubles := seen.troubles(); len(troubles) != 0 {
					t.Errorf("there are the faults %v", troubles)
				}
			})
		})
	}
}

// TestRedirects holds that a redirect is a fault, and that nobody else is asked: not
// another host, and not the same without TLS or at another port.
func TestRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"http://elsewhere.test", "http://dogma.test:80", "http://sub.dogma.test:36462", "/login"} {
			t.Run(fmt.Sprint(status, " ", to), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, m := serving(t)
					var asked atomic.Int64
					other := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })
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
						t.Errorf("a redirect is the fault %q", got)
					}
					if n := asked.Load(); n != 0 || len(s.questions()) != 1 {
						t.Errorf("others were asked %d times, the server %d times", n, len(s.questions()))
					}
				})
			})
		}
	}
}

// TestEchoes has a server that sends back the token wherever an error could take it from.
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
					t.Errorf("the fault is %q", got)
				}
			})
		})
	}
}

// failing is a transport whose errors have the whole request in them.
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
			t.Errorf("the fault is %q", got)
		}
	})
}

// TestRestoredRepository has a server that was set back: what it says of older revisions
// is not applied, and what comes after the newest known is.
func TestRestoredRepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		for limit := range int64(5) {
			s.commit(document, documentOf(limit))
		}
		c := configOf(m)
		c.Wait = 5 * time.Second
		seen, _ := follow(t, c) // Revision 7, with a limit of 4.
		s.restore(2)
		pass(time.Minute)
		faults := len(seen.troubles())
		if faults < 3 || !strings.Contains(seen.troubles()[0].text, "set back to a backup") ||
			!strings.Contains(seen.troubles()[1].text, "has revision 2 now, and had 7") {
			t.Fatalf("a repository that was set back is the faults %v", seen.troubles())
		}
		seen.want(t, faults, 4)
		// Revision 7 is another one now, and no different from revision 8.
		for range 6 {
			s.commit(document, documentOf(300))
		}
		pass(72 * time.Second)
		if plans := seen.plans(); len(plans) != 2 || plans[1].Plan.Limit != 300 || plans[1].Revision != 8 {
			t.Errorf("newer revisions are told as %+v", plans[1:])
		}
	})
}

// TestNoWatches has a server, or a proxy before it, that refuses all watches: the document
// is read as seldom as watches are tried, and what else is committed is no change.
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
		before := len(s.questions())
		s.commit("/other.json", `{}`)
		pass(time.Hour)
		if n := len(s.questions()) - before; n > 150 {
			t.Errorf("%d requests in an hour", n)
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
		"no URL":               {func(c *dogma.Config) { c.URL = "" }, "write it like"},
		"a host alone":         {func(c *dogma.Config) { c.URL = "dogma.test:36462" }, "write it like"},
		"another scheme":       {func(c *dogma.Config) { c.URL = "ftp://dogma.test" }, "write it like"},
		"no host":              {func(c *dogma.Config) { c.URL = "https://:36462" }, "write it like"},
		"a broken URL":         {func(c *dogma.Config) { c.URL = "http://user:hidden@[::1" }, "write it like"},
		"a token in the URL":   {func(c *dogma.Config) { c.URL = "https://user:hidden@dogma.test" }, "Token or TokenFile"},
		"a query":              {func(c *dogma.Config) { c.URL = "https://dogma.test?x=1" }, "port only"},
		"a fragment":           {func(c *dogma.Config) { c.URL = "https://dogma.test#x" }, "port only"},
		"no project":           {func(c *dogma.Config) { c.Project = "" }, "must have a name"},
		"no repository":        {func(c *dogma.Config) { c.Repository = "" }, "must have a name"},
		"a project with a way": {func(c *dogma.Config) { c.Project = "a/b" }, "no name"},
		"a repository up":      {func(c *dogma.Config) { c.Repository = ".." }, "no name"},
		"no path":              {func(c *dogma.Config) { c.Path = "" }, "name a JSON file"},
		"a path without /":     {func(c *dogma.Config) { c.Path = "d.json" }, "name a JSON file"},
		"a text":               {func(c *dogma.Config) { c.Path = "/d.txt" }, "name a JSON file"},
		"a pattern":            {func(c *dogma.Config) { c.Path = "/*.json" }, "no name"},
		"two files":            {func(c *dogma.Config) { c.Path = "/a.json,/b.json" }, "no name"},
		"an empty folder":      {func(c *dogma.Config) { c.Path = "//d.json" }, "must have a name"},
		"a folder up":          {func(c *dogma.Config) { c.Path = "/../d.json" }, "no name"},
		"no UTF-8":             {func(c *dogma.Config) { c.Path = "/\xff.json" }, "no name"},
		"a long path":          {func(c *dogma.Config) { c.Path = "/" + strings.Repeat("d", 5000) + ".json" }, "more than 4096 bytes"},
		"a JSON path":          {func(c *dogma.Config) { c.JSONPath = "providers" }, "begins with $"},
		"index":                {func(c *dogma.Config) { c.Index = -2 }, "-1 when"},
		"half a second":        {func(c *dogma.Config) { c.Wait = 500 * time.Millisecond }, "whole seconds"},
		"one and a half":       {func(c *dogma.Config) { c.Wait = 1500 * time.Millisecond }, "whole seconds"},
		"no wait":              {func(c *dogma.Config) { c.Wait = -time.Second }, "whole seconds"},
		"more than a day":      {func(c *dogma.Config) { c.Wait = 24*time.Hour + time.Second }, "whole seconds"},
		"settle":               {func(c *dogma.Config) { c.Settle = 999 * time.Millisecond }, "make it longer"},
		"negative settle":      {func(c *dogma.Config) { c.Settle = -time.Second }, "make it longer"},
		"hold":                 {func(c *dogma.Config) { c.HoldFor = 69 * time.Second }, "make it 1m10s or more"},
		"negative hold":        {func(c *dogma.Config) { c.HoldFor = -1 }, "or more"},
		"two tokens":           {func(c *dogma.Config) { c.Token, c.TokenFile = "a", "/b" }, "give one"},
		"a token of two lines": {func(c *dogma.Config) { c.Token = "hidden\nX-Evil: 1" }, "byte 6"},
		"a long token":         {func(c *dogma.Config) { c.Token = strings.Repeat("h", 5000) }, "5000 bytes"},
		"no token file":        {func(c *dogma.Config) { c.TokenFile = t.TempDir() + "/none" }, "cannot be read"},
		"a folder of a token":  {func(c *dogma.Config) { c.TokenFile = t.TempDir() }, "cannot be read"},
	} {
		changed := good
		c.change(&changed)
		_, err := dogma.New(changed)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") || len(err.Error()) > 400 {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestTokenIsNotPrinted prints what has a token in all ways.
func TestTokenIsNotPrinted(t *testing.T) {
	c := dogma.Config{URL: "https://dogma.test", Project: "p", Repository: "r", Path: "/d.json", JSONPath: "$.a", Token: "hidden"}
	source, err := dogma.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, what := range []any{c, &c, source, []any{c, source}} {
			if got := fmt.Sprintf(form, what); strings.Contains(got, "hidden") {
				t.Errorf("%s of %T is %s", form, what, got)
			}
		}
	}
	if got, want := fmt.Sprint(source), "p/r/d.json on https://dogma.test at $.a"; got != want {
		t.Errorf("a source is printed as %q, want %q", got, want)
	}
}
