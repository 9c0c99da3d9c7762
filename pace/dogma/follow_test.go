package dogma_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/dogma"
)

// notes is a Receiver that records its calls with their times.
type notes struct {
	mu       sync.Mutex
	assigned []report
	faults   []fault
	valid    []time.Time
}

type report struct {
	pace.Assignment

	at time.Time
}

type fault struct {
	text string
	at   time.Time
}

func (n *notes) Assign(a pace.Assignment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.assigned = append(n.assigned, report{a, time.Now()})
}

func (n *notes) Fault(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, fault{err.Error(), time.Now()})
}

func (n *notes) ValidUntil(until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.valid = append(n.valid, until)
}

func (n *notes) Brake(pace.Brake)          {}
func (n *notes) ClockOffset(time.Duration) {}
func (n *notes) Demand() int64             { return 0 }

// Rate implements pace.Receiver. This source gives plans.
func (*notes) Rate(pace.Rate) {}

// Requested implements pace.Receiver.
func (*notes) Requested() (total, waiting int64) { return 0, 0 }

func (n *notes) plans() []report {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.assigned)
}

func (n *notes) troubles() []fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.faults)
}

// validUntil returns the last expiry that was set, or the zero time.
func (n *notes) validUntil() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.valid) == 0 {
		return time.Time{}
	}
	return n.valid[len(n.valid)-1]
}

// want checks the limits assigned so far and the number of faults.
func (n *notes) want(t *testing.T, faults int, limits ...int64) {
	t.Helper()
	synctest.Wait()
	var got []int64
	for _, a := range n.plans() {
		got = append(got, a.Plan.Limit)
	}
	if troubles := n.troubles(); !slices.Equal(got, limits) || len(troubles) != faults {
		t.Fatalf("got limits %v and faults %v, want limits %v and %d faults", got, troubles, limits, faults)
	}
}

const host = "dogma.test:36462"

// configOf returns the configuration for the document of all tests.
func configOf(m *machines) dogma.Config {
	return dogma.Config{
		URL: "http://" + host, Project: "campaign", Repository: "limits", Path: document,
		Client: m.client(), Token: "appToken-cafe",
	}
}

// follow follows the document until the end of the test.
func follow(t *testing.T, c dogma.Config) (seen *notes, cancel context.CancelFunc) {
	t.Helper()
	source, err := dogma.New(c)
	if err != nil {
		t.Fatal(err)
	}
	seen = &notes{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Follow(ctx, seen) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Follow returned %v", err)
		}
	})
	synctest.Wait()
	return seen, cancel
}

func documentOf(limit int64) string { return fmt.Sprintf(`{"limit":%d,"instances":4}`, limit) }

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // synctest's fake clock: no real time passes
	synctest.Wait()
}

// serving returns a server in memory. Its document has a limit of 100, in revision 2.
func serving(t *testing.T) (*server, *machines) {
	t.Helper()
	m, s := newMachines(), newServer()
	s.accepts("appToken-cafe")
	s.commit(document, documentOf(100))
	m.serve(t, host, s)
	return s, m
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		c := configOf(m)
		c.Index = 3
		seen, _ := follow(t, c)
		seen.want(t, 0, 100)
		first := seen.plans()[0]
		if first.Plan.Index != 3 || first.Plan.Instances != 4 || first.Revision != 2 || !first.Settled.IsZero() || first.From != 0 {
			t.Fatalf("the first assignment is %+v, want revision 2 for instance 3 of 4", first)
		}
		pass(90 * time.Minute)
		seen.want(t, 0, 100)

		s.commit("/other.json", `{}`)
		pass(time.Minute)
		seen.want(t, 0, 100)

		for _, limit := range []int64{200, 50} {
			before := time.Now()
			revision := s.commit(document, documentOf(limit))
			pass(time.Second)
			plans := seen.plans()
			last := plans[len(plans)-1]
			if last.Plan.Limit != limit || last.Revision != int64(revision) {
				t.Fatalf("after the commit of revision %d, the last assignment has limit %d and revision %d", revision, last.Plan.Limit, last.Revision)
			}
			if late := last.at.Sub(before); late > time.Second {
				t.Errorf("a change was assigned %v after its commit, want at most 1s", late)
			}
			if got := last.Settled.Sub(last.at); got != 2*time.Second {
				t.Errorf("a change is settled %v after its assignment, want 2s", got)
			}
		}
		if until := seen.validUntil(); !until.IsZero() {
			t.Errorf("without HoldFor, the plan expires at %v, want never", until)
		}
	})
}

// TestRequests checks the requests: a read, then watches after the newest revision.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		s.commit("/other.json", `{}`)
		c := configOf(m)
		c.Wait = 7 * time.Second
		seen, _ := follow(t, c)
		pass(time.Minute)
		s.commit(document, documentOf(200)) // creates revision 4
		pass(5 * time.Second)
		seen.want(t, 0, 100, 200)

		requests := s.requests()
		if requests[0].known != "" || requests[0].prefer != "" {
			t.Errorf("the first request is %+v, want a read without If-None-Match and Prefer", requests[0])
		}
		for i, q := range requests {
			if q.path != "/api/v1/projects/campaign/repos/limits/contents/providers/mail.json" || q.query != "" || q.bearer != "appToken-cafe" {
				t.Fatalf("request %d has the wrong path, query or token: %+v", i, q)
			}
			if i > 0 && (q.prefer != "wait=7, notify-entry-not-found=true" || q.known != "3" && i != len(requests)-1) {
				t.Errorf("request %d is %+v, want a watch after revision 3 with wait=7", i, q)
			}
			if i == 0 {
				continue
			}
			// The server waits for 5.6 to 7 s, and the client pauses for 1 s.
			if gap := q.at.Sub(requests[i-1].at); gap < time.Second || gap > 8*time.Second {
				t.Errorf("request %d was sent %v after the one before, want 1s to 8s", i, gap)
			}
		}
		if last := requests[len(requests)-1]; last.known != "4" {
			t.Errorf("the last watch is after revision %q, want 4", last.known)
		}
		if n := len(requests); n < 8 || n > 12 {
			t.Errorf("got %d requests in 65 s, want 8 to 12", n)
		}
	})
}

// TestServerPrefersWholeSeconds checks that the test server refuses the same
// Prefer headers as Central Dogma.
func TestServerPrefersWholeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := serving(t)
		client := m.client()
		for prefer, want := range map[string]int{
			"wait=0.5": 400, "wait=0": 400, "wait=-1": 400, "wait=": 400, "wait": 400, "nothing": 400, "wait=1s": 400,
			"wait=1": 304, "Wait = 1 , notify-entry-not-found=true": 304, "": 304,
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"http://"+host+"/api/v1/projects/campaign/repos/limits/contents"+document, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer appToken-cafe")
			req.Header.Set("If-None-Match", "-1")
			req.Header.Set("Prefer", prefer)
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("Prefer %q: got %d, want %d", prefer, res.StatusCode, want)
			}
		}
	})
}

// TestInvalidDocuments checks that an invalid version causes one fault, and does not delay
// the next version.
func TestInvalidDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		seen, _ := follow(t, configOf(m))
		for i, content := range []string{
			`{}`, `{"limit":-1,"instances":4}`, `{"limit":5,"instances":0}`, `[1]`, `"text"`, `{"limit":5,"instances":4,"note":1}`,
			`{"limit":5,"instances":4,"index":2}`, // This instance has index 0, so the document belongs to another instance.
		} {
			revision := s.commit(document, content)
			pass(10 * time.Minute)
			seen.want(t, i+1, 100)
			last := seen.troubles()[i]
			if !strings.Contains(last.text, fmt.Sprintf("revision %d of campaign/limits%s", revision, document)) {
				t.Errorf("the document %s caused the fault %q, want its revision and path in it", content, last.text)
			}
		}
		faults := len(seen.troubles())
		s.commit(document, documentOf(100))
		pass(time.Second)
		seen.want(t, faults, 100, 100)
		s.commit(document, documentOf(300))
		pass(time.Second)
		seen.want(t, faults, 100, 100, 300)
	})
}

func TestInvalidAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		s.commit(document, `{"limit":5}`)
		c := configOf(m)
		c.HoldFor = 2 * time.Minute
		seen, _ := follow(t, c)
		pass(time.Hour)
		seen.want(t, 1)
		if until := seen.validUntil(); !until.IsZero() {
			t.Errorf("no plan was assigned, but an expiry was set: %v", until)
		}
		s.commit(document, documentOf(7))
		pass(time.Second)
		seen.want(t, 1, 7)
		if first := seen.plans()[0]; !first.Settled.IsZero() {
			t.Errorf("the first plan is settled at %v, want no settle time", first.Settled)
		}
	})
}

// TestMissingDocument commits a document late, removes the document, and commits it again.
func TestMissingDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		c := configOf(m)
		c.Path = "/late.json"
		seen, _ := follow(t, c)
		pass(time.Minute)
		faults := len(seen.troubles())
		if faults < 4 || faults > 6 || !strings.Contains(seen.troubles()[0].text, "Entry '/late.json' does not exist") {
			t.Fatalf("a missing document caused the faults %v, want 4 to 6 that name it", seen.troubles())
		}
		s.commit("/late.json", documentOf(10))
		pass(72 * time.Second)
		seen.want(t, faults, 10)
		pass(20 * time.Second)

		s.commit("/late.json", "")
		pass(time.Second)
		seen.want(t, faults+1, 10)
		s.commit("/late.json", documentOf(20))
		pass(3 * time.Second)
		seen.want(t, faults+1, 10, 20)
	})
}

// TestRetries checks the pauses while the server is down and after it recovers.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMachines(), newServer()
		s.commit(document, documentOf(100))
		down := time.Now()
		seen, _ := follow(t, configOf(m))
		pass(10 * time.Minute)
		troubles := seen.troubles()
		if !troubles[0].at.Equal(down) || !strings.Contains(troubles[0].text, "connection refused") {
			t.Errorf("the first fault is %q after %v, want connection refused at once", troubles[0].text, troubles[0].at.Sub(down))
		}
		for i, seconds := range []int64{2, 4, 8, 16, 32, 60, 60, 60, 60} {
			got, pause := troubles[i+1].at.Sub(troubles[i].at), time.Duration(seconds)*time.Second
			if got < pause*8/10 || got > pause*12/10 {
				t.Errorf("after failure %d the pause is %v, want %v within a fifth", i+1, got, pause)
			}
		}
		if troubles[9].at.Sub(troubles[8].at) == troubles[8].at.Sub(troubles[7].at) {
			t.Error("two pauses are equal: instances would retry all at the same time")
		}
		m.serve(t, host, s)
		pass(74 * time.Second) // The read comes within 72 s, and the watch 1 s later.
		faults := len(seen.troubles())
		seen.want(t, faults, 100)

		// After one answer, the pauses start from the shortest again.
		s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
			refuse(w, http.StatusServiceUnavailable, "ReadOnlyException", "")
			return true
		})
		// The open watch ends within 60 s, and the next one is refused. The second refusal comes after
		// a pause of at most 2.4 s.
		pass(65 * time.Second)
		troubles = seen.troubles()
		if gap := troubles[faults+1].at.Sub(troubles[faults].at); gap > 2400*time.Millisecond {
			t.Errorf("after an answer the first pause is %v, want at most 2.4s", gap)
		}
	})
}

// TestWatchesCutShort has a proxy that ends each watch after 30 s. These failures must not
// lengthen the pauses.
func TestWatchesCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		s.answers(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Prefer") == "" {
				return false
			}
			select {
			case <-time.After(30 * time.Second):
			case <-r.Context().Done():
			}
			w.WriteHeader(http.StatusGatewayTimeout)
			return true
		})
		seen, _ := follow(t, configOf(m))
		pass(10 * time.Minute)
		troubles := seen.troubles()
		for i := range troubles[1:] {
			// The sum is the watch of 30 s, a pause of at most 2.4 s and, after the read, 1 s.
			if gap := troubles[i+1].at.Sub(troubles[i].at); gap > 33400*time.Millisecond {
				t.Errorf("fault %d comes %v after the one before, want at most 33.4s", i+2, gap)
			}
		}
		s.commit(document, documentOf(200))
		pass(34 * time.Second)
		seen.want(t, len(seen.troubles()), 100, 200)
	})
}

func TestHoldFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := newMachines(), newServer()
		s.commit(document, documentOf(100))
		stop := m.serve(t, host, s)
		c := configOf(m)
		c.Wait, c.HoldFor = 10*time.Second, 5*time.Minute
		seen, _ := follow(t, c)
		held := func() time.Duration { return time.Until(seen.validUntil()) }
		if got := held(); got != 5*time.Minute {
			t.Errorf("the first plan is valid for %v, want 5m", got)
		}
		for range 100 { // Each answer extends the validity, even one without a change.
			pass(10 * time.Second)
			if got := held(); got < 5*time.Minute-11*time.Second {
				t.Fatalf("while the server answers, the plan is valid for only %v more", got)
			}
		}
		s.commit(document, `{"limit":"?"}`) // The server answers, so the last valid plan does not expire.
		pass(10 * time.Minute)
		seen.want(t, 1, 100)
		if got := held(); got < 5*time.Minute-11*time.Second {
			t.Errorf("while the document is invalid, the plan is valid for only %v more", got)
		}
		stop()
		at := seen.validUntil()
		pass(10 * time.Minute)
		if got := seen.validUntil(); !got.Equal(at) || time.Until(got) > 0 {
			t.Errorf("while the server is down, the plan expires at %v, want %v, which has passed", got, at)
		}
		m.serve(t, host, s)
		pass(72 * time.Second)
		if got := held(); got < 3*time.Minute {
			t.Errorf("after the server recovers, the plan is valid for only %v more", got)
		}
	})
}

// TestContextEndsAtOnce cancels Follow during a watch, a body and a pause.
func TestContextEndsAtOnce(t *testing.T) {
	for name, prepare := range map[string]func(s *server){
		"watching": func(*server) {},
		"retrying": func(s *server) {
			s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusInternalServerError)
				return true
			})
		},
		"waiting for the body": func(s *server) {
			s.answers(func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return true
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := serving(t)
				prepare(s)
				source, err := dogma.New(configOf(m))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				seen, ended := &notes{}, make(chan error)
				go func() { ended <- source.Follow(ctx, seen) }()
				pass(time.Millisecond)
				faults := len(seen.troubles())
				cancel()
				before := time.Now()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if elapsed := time.Since(before); elapsed != 0 {
					t.Errorf("Follow returned %v after the cancellation, want 0s", elapsed)
				}
				if n := len(seen.troubles()); n != faults {
					t.Errorf("the cancellation was reported as a fault: %q", seen.troubles()[n-1].text)
				}
			})
		})
	}
}

// TestLowersBeforeItRaises starts 8 instances at different times and commits changes at
// different times. No instance may raise its part before all instances know the change.
func TestLowersBeforeItRaises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		s.commit(document, `{"limit":100,"instances":8}`)
		var all []*notes
		for i := range 8 {
			c := configOf(m)
			c.Index, c.Wait = i, 5*time.Second
			seen, _ := follow(t, c)
			all = append(all, seen)
			pass(370 * time.Millisecond)
		}
		for round := range 50 {
			s.commit(document, fmt.Sprintf(`{"limit":%d,"instances":8}`, 200+round))
			pass(3 * time.Second)
			var known, up time.Time // up is the earliest time at which an instance raises its part.
			for i, seen := range all {
				plans := seen.plans()
				last := plans[len(plans)-1]
				if last.Plan.Limit != int64(200+round) {
					t.Fatalf("round %d: instance %d still has the limit %d", round, i, last.Plan.Limit)
				}
				if last.at.After(known) {
					known = last.at
				}
				if up.IsZero() || last.Settled.Before(up) {
					up = last.Settled
				}
			}
			if !up.After(known) {
				t.Errorf("round %d: an instance raises its part %v before another one knows the change", round, known.Sub(up))
			}
			pass(time.Duration(round) * 97 * time.Millisecond)
		}
	})
}

// TestJSONPath has the documents of two providers in one file.
func TestJSONPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		both := func(mail, sms int64) {
			s.commit("/all.json", fmt.Sprintf(`{"providers":{"mail":%s,"sms":%s}}`, documentOf(mail), documentOf(sms)))
		}
		both(10, 20)
		c := configOf(m)
		c.Path, c.JSONPath = "/all.json", "$.providers.sms"
		seen, _ := follow(t, c)
		both(11, 20) // A change of the other provider is ignored.
		pass(10 * time.Minute)
		seen.want(t, 0, 20)
		both(11, 21)
		pass(time.Second)
		seen.want(t, 0, 20, 21)
		if got := s.requests()[0].query; got != "jsonpath=%24.providers.sms" {
			t.Errorf("the query is %q, want jsonpath", got)
		}
		s.commit("/all.json", `{"providers":{}}`)
		pass(time.Second)
		seen.want(t, 1, 20, 21)
		if got := seen.troubles()[0].text; !strings.Contains(got, "JSON path evaluation failed") {
			t.Errorf("a JSON path without a match caused the fault %q, want the server's message", got)
		}
	})
}

func TestAwkwardNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		s.project, s.repository = "a b", "c?d#e"
		const path = "/ü%2F/..x/../.json"
		c := configOf(m)
		c.Project, c.Repository, c.Path = s.project, s.repository, path
		if _, err := dogma.New(c); err == nil {
			t.Error("New accepts a path that contains ..")
		}
		c.Path = strings.Replace(path, "/../", "/%2e%2e/", 1)
		s.commit(c.Path, documentOf(5))
		c.URL = "http://proxy.test/behind/a%2Fproxy/"
		m.serve(t, "proxy.test:80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.RequestURI, "/behind/a%2Fproxy/api/") {
				t.Errorf("the proxy received the path %s, want the path of URL before the API's path", r.RequestURI)
			}
			r.URL.Path = strings.TrimPrefix(r.URL.Path, "/behind/a/proxy")
			r.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, "/behind/a%2Fproxy")
			s.ServeHTTP(w, r)
		}))
		seen, _ := follow(t, c)
		seen.want(t, 0, 5)
		want := "/api/v1/projects/a%20b/repos/c%3Fd%23e/contents/%C3%BC%252F/..x/%252e%252e/.json"
		if got := s.requests()[0].path; got != want {
			t.Errorf("the path is %s, want %s", got, want)
		}
	})
}

// TestTokenFile replaces the token of a running source.
func TestTokenFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		file := filepath.Join(t.TempDir(), "token")
		write := func(token string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.accepts("appToken-first")
		write("appToken-first")
		c := configOf(m)
		c.Token, c.TokenFile, c.Wait = "", file, 5*time.Second
		seen, _ := follow(t, c)
		seen.want(t, 0, 100)

		s.accepts("appToken-second")
		s.commit(document, documentOf(200))
		pass(10 * time.Second)
		faults := len(seen.troubles())
		if faults == 0 || !strings.Contains(seen.troubles()[faults-1].text, "401") {
			t.Fatalf("a refused token caused the faults %v, want a 401 last", seen.troubles())
		}
		write("broken token")
		pass(time.Minute)
		last := len(seen.troubles()) - 1
		if got := seen.troubles()[last].text; !strings.Contains(got, "byte 6 of the token") || strings.Contains(got, "broken") {
			t.Errorf("an invalid token caused the fault %q, want the byte's position and no token", got)
		}
		write("appToken-second")
		pass(72 * time.Second)
		if plans := seen.plans(); plans[len(plans)-1].Plan.Limit != 200 {
			t.Errorf("with the new token, the limit is %d, want 200", plans[len(plans)-1].Plan.Limit)
		}
		for _, f := range seen.troubles() {
			if strings.Contains(f.text, "appToken") {
				t.Errorf("a fault contains the token: %q", f.text)
			}
		}
	})
}

func TestAnonymous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := serving(t)
		s.accepts("")
		c := configOf(m)
		c.Token = ""
		seen, _ := follow(t, c)
		seen.want(t, 0, 100)
		if got := s.requests()[0].bearer; got != "anonymous" {
			t.Errorf("without a token, the bearer token is %q, want anonymous", got)
		}
	})
}
