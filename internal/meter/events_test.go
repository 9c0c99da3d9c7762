package meter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/meter/journal"
)

// event is an event as a receiver reads it.
type event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            data      `json:"data"`
}

type data struct {
	Minute     time.Time `json:"minute"`
	Customer   string    `json:"customer"`
	Quota      string    `json:"quota"`
	Admitted   int64     `json:"admitted"`
	Metered    int64     `json:"metered"`
	Refused    int64     `json:"refused"`
	Correction bool      `json:"correction"`
	Shadow     bool      `json:"shadow"`
	Others     bool      `json:"others"`
}

func recordsOf(n int) []journal.Record {
	all := make([]journal.Record, n)
	for i := range all {
		all[i] = journal.Record{
			ID: journal.ID{Instance: "eu 1", Epoch: "e", Sequence: uint64(i)}, Time: 1e12, Minute: 100, Customer: fmt.Sprint("c", i), Quota: "calls",
			Admitted: 1,
		}
	}
	return all
}

// endpoint is a receiver that drops equal ids.
type endpoint struct {
	mu       sync.Mutex
	events   map[string]event
	requests int
	// answer gives the status, and whether the events are kept.
	answer func(request int, all []event, w http.ResponseWriter) (status int, keep bool)
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var all []event
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	if err != nil || r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/cloudevents-batch+json") {
		http.Error(w, fmt.Sprint(err), http.StatusTeapot)
		return
	}
	if status := e.take(all, w); status > 0 {
		w.WriteHeader(status)
	}
}

func (e *endpoint) take(all []event, w http.ResponseWriter) int {
	e.mu.Lock()
	defer e.mu.Unlock() // An answer may panic.
	e.requests++
	status, keep := e.answer(e.requests, all, w)
	for i := range all {
		if keep {
			e.events[all[i].ID] = all[i]
		}
	}
	return status
}

func accept(int, []event, http.ResponseWriter) (int, bool) { return http.StatusNoContent, true }

// serve starts an endpoint, and gives the output that posts to it.
func serve(t *testing.T, e *endpoint, change ...func(*EventsConfig)) *CloudEvents {
	t.Helper()
	e.events = map[string]event{}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	c := EventsConfig{URL: server.URL + "/events", Timeout: 10 * time.Second, SetAsideFile: filepath.Join(t.TempDir(), "aside")}
	for _, f := range change {
		f(&c)
	}
	out, err := NewCloudEvents(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	return out
}

func TestEventForm(t *testing.T) {
	e := &endpoint{answer: accept}
	out := serve(t, e)
	r := journal.Record{
		ID: journal.ID{Instance: "eu 1", Epoch: "e", Sequence: 7}, Time: 1_700_000_000_123, Minute: 28_333_333, Customer: "a\"b\\\x01\xff\u00e9",
		Quota: "calls", Admitted: -5, Metered: 4, Refused: 3, Shadow: true,
	}
	if n, err := out.Deliver(t.Context(), []journal.Record{r, {ID: journal.ID{Instance: "i", Epoch: "e"}, Others: true}, {}}); n != 3 || err != nil {
		t.Fatalf("delivered %d, %v", n, err)
	}
	got := e.events["eu 1/e/7"]
	want := `{1.0 eu 1/e/7 /headgate/eu%201 dev.headgate.usage.shadow a"b\` + "\x01" + `\xffé 2023-11-14 22:13:20.123 +0000 UTC application/json ` +
		`{2023-11-14 22:13:00 +0000 UTC a"b\` + "\x01" + `\xffé calls -5 4 3 false true false}}`
	if text := fmt.Sprint(got); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if got := e.events["i/e/0"]; got.Subject != "others" || !got.Data.Others || got.Type != TypeUsage {
		t.Errorf("the others are %+v", got)
	}
	if got, known := e.events["//0"]; !known || got.Subject != "" {
		t.Errorf("requests without a name are %+v", got)
	}
}

// TestHostileEndpoint is a table of endpoints. Every one gets 600 records in the end, each with one content.
func TestHostileEndpoint(t *testing.T) {
	for name, answer := range map[string]func(int, []event, http.ResponseWriter) (int, bool){
		"500 now and then":  func(n int, _ []event, _ http.ResponseWriter) (int, bool) { return 500 - 300*(n%2), n%2 == 1 },
		"500 although kept": func(n int, _ []event, _ http.ResponseWriter) (int, bool) { return 500 - 300*(n%2), true },
		"closes the connection": func(n int, _ []event, _ http.ResponseWriter) (int, bool) {
			if n%2 == 1 {
				panic(http.ErrAbortHandler)
			}
			return 200, true
		},
		"a huge answer": func(_ int, _ []event, w http.ResponseWriter) (int, bool) {
			for range 50 {
				_, _ = w.Write(make([]byte, 64<<10))
			}
			return 0, true
		},
		"garbage": func(n int, _ []event, w http.ResponseWriter) (int, bool) {
			if n%2 == 0 {
				return 200, true
			}
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = c.Write([]byte("HTTP/9 what\r\n"))
				_ = c.Close()
			}
			return 0, false
		},
		"redirects": func(n int, _ []event, w http.ResponseWriter) (int, bool) {
			w.Header().Set("Location", "/elsewhere")
			return 200 + 107*(n%2), n%2 == 0
		},
		"413 above ten": func(_ int, all []event, _ http.ResponseWriter) (int, bool) {
			return sizeStatus(all, 10), len(all) <= 10
		},
		"400 above one": func(_ int, all []event, _ http.ResponseWriter) (int, bool) {
			return sizeStatus(all, 130), len(all) <= 130
		},
		"slow answers": func(n int, _ []event, _ http.ResponseWriter) (int, bool) {
			<-time.After(5 * time.Millisecond)
			return 200, n > 0
		},
		"429, then 200s": func(n int, _ []event, _ http.ResponseWriter) (int, bool) { return max(200, 429-229*(n-1)), n > 1 },
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{answer: answer}
			all := recordsOf(600)
			deliverAll(t, serve(t, e, func(c *EventsConfig) { c.MaxEvents = 200 }), all)
			e.mu.Lock()
			defer e.mu.Unlock()
			if len(e.events) != len(all) {
				t.Errorf("the endpoint has %d events, want %d", len(e.events), len(all))
			}
		})
	}
}

func sizeStatus(all []event, most int) int {
	if len(all) > most {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusAccepted
}

// deliverAll delivers as a Meter does, without its pauses.
func deliverAll(t *testing.T, out Output, all []journal.Record) {
	t.Helper()
	for attempt := 0; len(all) > 0; attempt++ {
		n, err := out.Deliver(t.Context(), all)
		if n < len(all) && err == nil || attempt > 1000 {
			t.Fatalf("attempt %d delivered %d of %d: %v", attempt, n, len(all), err)
		}
		all = all[n:]
	}
}

// TestPoison: the endpoint refuses one event for ever. It is set aside, because the endpoint accepts the others.
func TestPoison(t *testing.T) {
	poison := recordsOf(60)[37].ID.String()
	e := &endpoint{answer: func(_ int, all []event, _ http.ResponseWriter) (int, bool) {
		for i := range all {
			if all[i].ID == poison {
				return http.StatusUnprocessableEntity, false
			}
		}
		return http.StatusOK, true
	}}
	out := serve(t, e)
	deliverAll(t, out, recordsOf(60))
	text, err := os.ReadFile(out.config.SetAsideFile)
	if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"id":"`+poison+`"`) {
		t.Errorf("the file has %q, %v", text, err)
	}
	if len(e.events) != 59 || out.SetAside() != 1 {
		t.Errorf("%d events are delivered and %d set aside, want 59 and 1", len(e.events), out.SetAside())
	}
}

// TestPoisonRows: the endpoint refuses records for ever, several in a row, the first ones, or the last one. They are set aside,
// and all others arrive.
func TestPoisonRows(t *testing.T) {
	for name, refused := range map[string][]int{
		"two in a row": {30, 31}, "the first three": {0, 1, 2}, "the last one": {59}, "the last two": {58, 59}, "many": {3, 4, 5, 6, 7, 8, 9, 40, 42},
	} {
		poison := map[string]bool{}
		for _, i := range refused {
			poison[recordsOf(60)[i].ID.String()] = true
		}
		e := &endpoint{answer: func(_ int, all []event, _ http.ResponseWriter) (int, bool) {
			for i := range all {
				if poison[all[i].ID] {
					return http.StatusBadRequest, false
				}
			}
			return http.StatusOK, true
		}}
		out := serve(t, e)
		if n, err := out.Deliver(t.Context(), recordsOf(60)); n != 60 || err != nil {
			t.Errorf("%s: delivered %d, %v", name, n, err)
		}
		if len(e.events) != 60-len(refused) || out.SetAside() != uint64(len(refused)) {
			t.Errorf("%s: %d events are delivered and %d set aside", name, len(e.events), out.SetAside())
		}
	}
}

// TestFullAside: the file of refused records is full. Further ones are dropped and counted, and all others arrive.
func TestFullAside(t *testing.T) {
	poison := recordsOf(60)[37].ID.String()
	e := &endpoint{answer: func(_ int, all []event, _ http.ResponseWriter) (int, bool) {
		for i := range all {
			if all[i].ID == poison {
				return http.StatusBadRequest, false
			}
		}
		return http.StatusOK, true
	}}
	out := serve(t, e)
	if err := errors.Join(os.WriteFile(out.config.SetAsideFile, nil, 0o600), os.Truncate(out.config.SetAsideFile, maxAside)); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Deliver(t.Context(), recordsOf(60)); n != 60 || err != nil || len(e.events) != 59 {
		t.Errorf("delivered %d, %v, and %d events arrived", n, err, len(e.events))
	}
	m := Meter{table: newTable(1), deliveries: []*delivery{{out: out, reader: openJournal(t).Reader("events")}}}
	var log strings.Builder
	m.journal = openJournal(t)
	m.deliveries[0].log = slog.New(slog.NewTextHandler(&log, nil))
	m.deliveries[0].logRefused(time.Now())
	if s := m.Stats().Outputs[0]; s.Dropped != 1 || s.SetAside != 0 || !strings.Contains(log.String(), "dropped=1") {
		t.Errorf("%+v, with the log %q, want one dropped", s, log.String())
	}
}

func openJournal(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(journal.Config{Folder: t.TempDir(), Instance: "i", Readers: []string{"events"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// TestEndpointAtFault: the endpoint refuses every event. None is set aside: a wrong address must lose nothing.
func TestEndpointAtFault(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 413, 415, 422, 301} {
		e := &endpoint{answer: func(int, []event, http.ResponseWriter) (int, bool) { return status, false }}
		out := serve(t, e)
		n, err := out.Deliver(t.Context(), recordsOf(60))
		if n != 0 || err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) || out.SetAside() != 0 {
			t.Errorf("status %d: delivered %d, set %d aside, %v", status, n, out.SetAside(), err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"7": 7 * time.Second, "99999999": mostRetryAfter, "-1": 0, "soon": 0, "": 0} {
		e := &endpoint{answer: func(_ int, _ []event, w http.ResponseWriter) (int, bool) {
			w.Header().Set("Retry-After", header)
			return http.StatusServiceUnavailable, false
		}}
		_, err := serve(t, e).Deliver(t.Context(), recordsOf(1))
		var retry *RetryError
		if errors.As(err, &retry) != (want > 0) || want > 0 && retry.After != want {
			t.Errorf("Retry-After %q: %v", header, err)
		}
	}
}

// TestTokenIsReadAgain: a new token needs no restart, and no error shows it.
func TestTokenIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	out, err := NewCloudEvents(EventsConfig{URL: server.URL, TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"", "secret-1", "secret-2"} {
		if token != "" && os.WriteFile(file, []byte(token+"\n"), 0o600) != nil {
			t.Fatal("no token")
		}
		if _, err := out.Deliver(t.Context(), recordsOf(1)); err == nil || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
	if fmt.Sprint(seen) != "[Bearer secret-1 Bearer secret-2]" {
		t.Errorf("the endpoint got %q", seen)
	}
}

// TestQueryIsHidden: an error says which endpoint fails, without the secret in the query.
func TestQueryIsHidden(t *testing.T) {
	out, err := NewCloudEvents(EventsConfig{URL: "http://endpoint/events?key=secret", Transport: failing{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.Deliver(t.Context(), recordsOf(1))
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "http://endpoint/events: no network") {
		t.Errorf("the error is %v", err)
	}
}

// failing is a network without a connection.
type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no network") }

// TestBatchesAreBounded in events and bytes.
func TestBatchesAreBounded(t *testing.T) {
	most := 0
	e := &endpoint{answer: func(_ int, all []event, _ http.ResponseWriter) (int, bool) {
		most = max(most, len(all))
		return 200, true
	}}
	deliverAll(t, serve(t, e, func(c *EventsConfig) { c.MaxEvents = 7 }), recordsOf(100))
	if most != 7 {
		t.Errorf("a request has %d events, want 7", most)
	}
	for limit := 0; limit < 2000; limit += 7 {
		body, n := appendEvents(nil, recordsOf(5), limit)
		var all []event
		if err := json.Unmarshal(body, &all); err != nil || len(all) != n || n < 1 || n > 1 && len(body) > limit {
			t.Fatalf("with %d bytes: %d events in %d bytes, %v", limit, n, len(body), err)
		}
	}
}

// hanging is an endpoint that never answers, in virtual time.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestHangingEndpoint: each attempt ends with its timeout, and Close ends an attempt.
func TestHangingEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := NewCloudEvents(EventsConfig{URL: "http://endpoint", Transport: hanging{}, Timeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		m := opened(t, Config{Outputs: []Output{out}})
		m.Count(used("c", 1, 1))
		<-time.After(time.Hour)
		if s := m.Stats().Outputs[0]; s.Pending != 1 || s.Failures < 40 || s.Failures > 200 {
			t.Errorf("after an hour: %+v", s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_ = m.Close(ctx)
		if elapsed := time.Since(begun); elapsed > time.Second {
			t.Errorf("Close took %v", elapsed)
		}
	})
}

func TestFaultyURLs(t *testing.T) {
	for _, u := range []string{"", "billing", "ftp://a", "http://", "http://u:p@a/", "http://a b/", "://"} {
		if _, err := NewCloudEvents(EventsConfig{URL: u}); err == nil {
			t.Errorf("the address %q is taken", u)
		}
	}
}
