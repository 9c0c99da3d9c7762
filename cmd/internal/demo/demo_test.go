package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/share"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestStory checks the sizes in the captions: the division must compute them from the demands and
// the settings of the demo.
func TestStory(t *testing.T) {
	c, err := config.Parse(Settings())
	if err != nil {
		t.Fatal(err)
	}
	f := c.FairShare
	terms := share.Terms{Division: f.Division, Capacity: f.Capacity, Reservation: f.Reservation}
	const narrow = 80 // A longer line would wrap, and the table could not be updated in place.
	want := [][]int64{{10, 10, 10, 10}, {5, 15, 10, 10}, {3, 11, 16, 10}, {1, 12, 22, 5}, {10, 11, 14, 5}, {10, 10, 10, 10}}
	for i, act := range Story() {
		var clients []share.Client
		for n, name := range Clients() {
			clients = append(clients, share.Client{Name: name, Weight: 1, Demand: int64(act.Demand[n])})
		}
		if n := len("1 of 6: " + act.Caption); n >= narrow {
			t.Errorf("%q has %d characters", act.Caption, n)
		}
		if got := terms.Divide(clients); !slices.Equal(got, want[i]) {
			t.Errorf("%q: the sizes are %d, want %d", act.Caption, got, want[i])
		}
	}
}

func TestActAt(t *testing.T) {
	acts := []Act{{Cycles: 2}, {Cycles: 1}, {Cycles: 3}}
	for cycle, want := range []int{0, 0, 1, 2, 2, 2, 0, 0, 1} {
		if got := actAt(acts, cycle); got != want {
			t.Errorf("cycle %d has act %d, want %d", cycle, got, want)
		}
	}
}

// TestDepartures checks that the requests of a cycle are sent evenly within the cycle.
func TestDepartures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var asked []time.Duration
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		c := client{name: "A", demand: func(cycle int) int { return []int{3, 0, 1, 0}[cycle] }}
		c.run(ctx, "http://there", &http.Client{Transport: transportFunc(func(r *http.Request) int {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, time.Since(began))
			if r.Header.Get("X-Client-Id") != "A" {
				t.Errorf("the request has the client %q", r.Header.Get("X-Client-Id"))
			}
			return []int{200, 429, 502, 200}[len(asked)-1]
		})}, schedule{began: began, cycle: time.Second})
		want := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond, 2500 * time.Millisecond}
		if !slices.Equal(asked, want) {
			t.Errorf("the requests were sent after %v, want %v", asked, want)
		}
		if got := c.counted(); got != (count{sent: 4, admitted: 2, refused: 1, failed: 1}) {
			t.Errorf("counts %+v", got)
		}
	})
}

// transportFunc is a network that answers each request with a status.
type transportFunc func(*http.Request) int

func (a transportFunc) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a(r), Body: http.NoBody, Request: r}, nil
}

// TestAccount checks that a row is the difference between the totals at two cycle starts.
func TestAccount(t *testing.T) {
	within := &shares{Cycle: 7, Clients: []clientShare{
		{Client: "A", Demand: 10, Size: 5, Lent: 5, Admitted: 2, AdmittedTotal: 32},
		{Client: "B", Demand: 15, Size: 15, Borrowed: 5, Admitted: 13, Refused: 1, AdmittedTotal: 93, RefusedTotal: 6},
		{Client: "gone", Size: 9},
	}}
	next := &shares{Cycle: 8, Clients: []clientShare{
		{Client: "A", Demand: 3, Size: 3, Admitted: 1, AdmittedTotal: 34},
		{Client: "B", Demand: 17, Size: 11, Refused: 2, AdmittedTotal: 95, RefusedTotal: 10},
		{Client: "new", Demand: 1},
	}}
	rows, ok := account(within, next)
	want := []row{
		{client: "A", asked: 3, size: 5, lent: 5, admitted: 3, own: 5},
		{client: "B", asked: 17, size: 15, borrowed: 5, admitted: 15, refused: 3, own: 10},
	}
	if !ok || !slices.Equal(rows, want) {
		t.Errorf("the rows are %+v, %v\nwant %+v", rows, ok, want)
	}
	if got := total(rows); got.asked != 20 || got.size != 20 || got.admitted != 18 || got.refused != 3 {
		t.Errorf("the total is %+v", got)
	}
	if text := table(rows); !strings.Contains(text, "17     15    5         0     15        3        ##########+++++\n") {
		t.Errorf("the table is\n%s", text)
	}
	if _, ok := account(within, &shares{Cycle: 9}); ok {
		t.Error("cycles that are no neighbours are one account")
	}
}

// stage is a proxy with its admin listener. In each cycle, A sends two requests and one of them
// is admitted.
type stage struct {
	began time.Time
	mu    sync.Mutex
	asked int
}

const stageCycle = time.Second

func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.URL.Path == "/api/v1/shares" {
		n := int(time.Since(s.began) / stageCycle)
		err := json.NewEncoder(w).Encode(shares{
			Cycle: uint64(n), Capacity: 1, CycleSeconds: stageCycle.Seconds(), Ends: schedule{s.began, stageCycle}.start(n + 1),
			Clients: []clientShare{{Client: "A", Demand: 2, Size: 1, AdmittedTotal: int64(n), RefusedTotal: int64(n)}},
		})
		return w.Result(), err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked++; s.asked%2 == 0 {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	return w.Result(), nil
}

// played returns the output of a little more than five cycles on the stage.
func played(t *testing.T, terminal bool) string {
	t.Helper()
	upstream, err := StartUpstream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := upstream.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		on := &stage{began: time.Now().Add(-stageCycle / 4)}
		ctx, cancel := context.WithTimeout(t.Context(), 6*stageCycle)
		defer cancel()
		err = Run(ctx, Options{
			Proxy: "proxy", Admin: "admin", Upstream: upstream, Clients: []string{"A"}, Out: &out, Terminal: terminal,
			Acts: []Act{{"Rise.", 2, []int{2}}, {"Fall.", 2, []int{2}}}, network: on,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLines(t *testing.T) {
	text := played(t, false)
	const want = `
1 of 2: Rise.
cycle  1  A 1: 1 of 2  (size: admitted of asked)
cycle  2  A 1: 1 of 2  (size: admitted of asked)

2 of 2: Fall.
cycle  3  A 1: 1 of 2  (size: admitted of asked)
cycle  4  A 1: 1 of 2  (size: admitted of asked)

1 of 2: Rise.
cycle  5  A 1: 1 of 2  (size: admitted of asked)

IN ALL  ASKED  ADMITTED  REFUSED
A       10     5         5

The clients sent 10 requests. The service served 0, at most 1 in one cycle. The proxy refused 5.
`
	if !strings.HasSuffix(text, want) {
		t.Errorf("the output is\n%s\nwant it to end with\n%s", text, want)
	}
	for _, want := range []string{"can take 1 request in 1s", "ctl shares --watch --admin admin", "curl -i -H 'X-Client-Id: me' http://proxy/"} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
}

func TestTable(t *testing.T) {
	text := played(t, true)
	const again = "\x1b[5A\x1b[J2 of 2: Fall.\n\n" +
		"CLIENT  ASKED  SIZE  BORROWED  LENT  ADMITTED  REFUSED  # own + borrowed - lent\n" +
		"A       2      1     0         0     1         1        #\n" +
		"TOTAL   2      1     0         0     1         1        \n"
	if n := strings.Count(text, "\x1b[5A\x1b[J"); n != 4 || strings.Count(text, again) != 2 {
		t.Errorf("the table is redrawn %d times, want 4, and twice with each caption\n%q\n%q", n, again, text)
	}
}

// TestNoProxy checks that the demo ends with an error when no proxy answers.
func TestNoProxy(t *testing.T) {
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	err := Run(t.Context(), Options{Admin: strings.TrimPrefix(none.URL, "http://"), Out: new(bytes.Buffer)})
	if err == nil || !strings.Contains(err.Error(), "404 Not Found to /api/v1/shares") {
		t.Errorf("the error is %v", err)
	}
}
