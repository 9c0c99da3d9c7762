package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
)

var started = time.Unix(1_790_000_000, 0).UTC()

// instance is a peer.
type instance struct {
	at     string
	hung   atomic.Bool
	old    atomic.Bool // It has no /api/v1/live.
	rate   atomic.Int64
	lives  atomic.Int64
	tokens chan string // of the first requests
}

func liveOf(name string, rate int64) admin.Live {
	return admin.Live{
		Instance: name, Version: "v2", Started: started, Now: started, Config: "same",
		Totals: admin.LiveTotals{Requests: float64(rate)}, Rules: []admin.LiveRule{}, Attention: []admin.Attention{},
	}
}

func send(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(text)
}

// pause lets time go by between two looks at something.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// startInstance starts a peer at an address like 127.0.0.1:0.
func startInstance(t *testing.T, name, address string) *instance {
	t.Helper()
	p := &instance{tokens: make(chan string, 1000)}
	p.rate.Store(10)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case p.tokens <- r.Header.Get("Authorization"):
		default:
		}
		if p.hung.Load() {
			<-r.Context().Done()
			return
		}
		w.Header().Set(admin.InstanceHeader, name)
		if r.URL.Query().Get(admin.Local) != "1" && r.URL.Path != "/api/v1/status" {
			t.Errorf("%s is asked without local=1", r.URL)
		}
		switch {
		case r.URL.Path == "/api/v1/status":
			send(w, admin.Status{Version: "v1"})
		case p.old.Load():
			http.NotFound(w, r)
		case r.URL.Path == "/api/v1/live":
			p.lives.Add(1)
			send(w, liveOf(name, p.rate.Load()))
		case r.URL.Path == "/api/v1/history":
			one := 1.0
			send(w, admin.History{Instance: name, Start: 100, Step: 1, Series: map[string][]*float64{"requests": {&one}}})
		default:
			send(w, admin.Top{TopKeys: report.TopKeys{Keys: []report.TopKey{{Rule: "r", Key: "k", Refusals: 5}}}})
		}
	})
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = socket
	server.Start()
	t.Cleanup(server.Close)
	p.at = socket.Addr().String()
	return p
}

// fleet is a component with the calls of an own instance.
type fleet struct {
	*Component

	config config.Config
}

func startFleet(t *testing.T, peers ...string) *fleet {
	t.Helper()
	f := &fleet{config: config.Config{Instance: "own", Admin: config.Admin{Peers: peers}}}
	host := component.NewHost(slog.New(slog.DiscardHandler), false, nil)
	f.Component = New(Options{
		Host: host, Config: func() *config.Config { return &f.config }, Address: func() string { return "127.0.0.1:1" }, Started: started,
		Lookup: func(_ context.Context, name string) ([]string, error) {
			if name == "two.example" {
				return []string{"127.0.0.2", "127.0.0.3"}, nil
			}
			return nil, errors.New("no such host")
		},
	})
	t.Cleanup(func() { _ = f.Drain(context.WithoutCancel(t.Context())) })
	return f
}

// get asks the own instance.
func (f *fleet) get(t *testing.T, page string, into any, header ...string) int {
	t.Helper()
	path, _, _ := strings.Cut(page, "?")
	call := f.Wrap(calls.Call{Pattern: "GET " + path, Handler: func(w http.ResponseWriter, r *http.Request) {
		one := 1.0
		switch r.URL.Path {
		case "/api/v1/live":
			if r.URL.Query().Get("sort") == "wrong" {
				calls.WriteText(w, http.StatusBadRequest, "wrong")
				return
			}
			send(w, liveOf("own", 3))
		case "/api/v1/history":
			send(w, admin.History{Instance: "own", Start: 100, Step: 1, Series: map[string][]*float64{"requests": {&one}}})
		default:
			send(w, admin.Top{TopKeys: report.TopKeys{Keys: []report.TopKey{{Rule: "r", Key: "k", Refusals: 2}}}})
		}
	}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, page, http.NoBody)
	for n := 0; n+1 < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	w := httptest.NewRecorder()
	call.Handler(w, r)
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v: %s", page, err, w.Body)
		}
	}
	return w.Code
}

func (f *fleet) live(t *testing.T) *admin.Live {
	t.Helper()
	l := new(admin.Live)
	if code := f.get(t, "/api/v1/live", l); code != http.StatusOK {
		t.Fatalf("the answer is %d", code)
	}
	return l
}

// until reads until a condition holds, and gives the time that it took.
func (f *fleet) until(t *testing.T, what string, holds func(l *admin.Live) bool) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) < 20*time.Second {
		if holds(f.live(t)) {
			return time.Since(began)
		}
		pause(t, 20*time.Millisecond)
	}
	t.Fatalf("%s: not within 20 s: %+v", what, f.live(t))
	return 0
}

// TestHungInstance: an instance that does not answer is a fault and missing from the sums, and comes back by itself. The rate is never
// above the true one.
func TestHungInstance(t *testing.T) {
	t.Parallel()
	one, two := startInstance(t, "hg-1", "127.0.0.1:0"), startInstance(t, "hg-2", "127.0.0.1:0")
	f := startFleet(t, one.at, two.at)
	all := func(l *admin.Live) bool { return l.Totals.Requests == 23 && len(l.Attention) == 0 }
	without := func(l *admin.Live) bool {
		if l.Totals.Requests > 23 {
			t.Errorf("the rate is %v", l.Totals.Requests)
		}
		return l.Totals.Requests == 13 && l.Attention[0].Level == "fault" && l.Attention[0].Name == "hg-2" && !l.Instances[2].OK
	}
	f.until(t, "all answer", all)
	two.hung.Store(true)
	took := f.until(t, "the fault", without)
	t.Logf("the fault took %s", took)
	if text := f.live(t).Attention[0].Text; !strings.Contains(text, "no answer within 800ms: sums are over 2 of 3 instances") {
		t.Errorf("the fault is %q", text)
	}
	two.hung.Store(false)
	f.until(t, "the end of the fault", all)
}

// TestOneRoundForAll: many readers cost a peer one request a second, and none after the last reader.
func TestOneRoundForAll(t *testing.T) {
	t.Parallel()
	one := startInstance(t, "hg-1", "127.0.0.1:0")
	f := startFleet(t, one.at)
	began := time.Now()
	for time.Since(began) < 3*time.Second {
		for range 20 {
			f.live(t)
		}
		pause(t, 10*time.Millisecond)
	}
	if asked, most := one.lives.Load(), int64(time.Since(began)/time.Second)+2; asked < 2 || asked > most {
		t.Errorf("the peer was asked %d times, want at most %d", asked, most)
	}
	for deadline := time.Now().Add(pollLast + 20*time.Second); f.Pollers() > 0; pause(t, 100*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the poller goes on without readers")
		}
	}
}

// TestMembers: the own instance, an instance with two addresses, one of an older version, one that is closed, and a name without addresses.
func TestMembers(t *testing.T) {
	t.Parallel()
	self, other := startInstance(t, "own", "127.0.0.1:0"), startInstance(t, "hg-1", "127.0.0.2:0")
	_, port, _ := net.SplitHostPort(other.at)
	again := startInstance(t, "hg-1", "127.0.0.3:"+port)
	older := startInstance(t, "hg-0", "127.0.0.1:0")
	older.old.Store(true)
	gone := startInstance(t, "gone", "127.0.0.1:0").at
	gone = gone[:strings.LastIndex(gone, ":")] + ":1"
	f := startFleet(t, self.at, "two.example:"+port, older.at, gone, "none.example:9902")
	l := f.live(t)
	if len(l.Instances) != 4 || l.Totals.Requests != 13 {
		t.Fatalf("got %+v", l.Instances)
	}
	for i, want := range []admin.LiveInstance{
		{Name: "own", Address: "127.0.0.1:1", OK: true, Version: "v2"},
		{Name: "hg-1", Address: other.at, OK: true, Version: "v2"},
		{Name: "hg-0", Address: older.at, Version: "v1", Error: "its version v1 has no /api/v1/live: its figures are missing"},
		{Address: gone, Error: "connection refused"},
	} {
		got := l.Instances[i]
		if got.Name != want.Name || got.Address != want.Address || got.OK != want.OK || got.Version != want.Version || got.Error != want.Error {
			t.Errorf("instance %d is %+v, want %+v", i, got, want)
		}
	}
	if a := l.Attention[0]; a.Level != "fault" || !strings.Contains(a.Text, "none.example cannot be resolved: no such host") {
		t.Errorf("got %+v", l.Attention)
	}
	if again.lives.Load() == 0 {
		t.Error("the second address was not asked")
	}
}

// TestWhoIsAsked: local=1 and a configuration without peers ask no peer. Peers get the token of the caller, and else that of the file.
func TestWhoIsAsked(t *testing.T) {
	t.Parallel()
	one := startInstance(t, "hg-1", "127.0.0.1:0")
	f := startFleet(t, one.at)
	var l admin.Live
	if f.get(t, "/api/v1/live?local=1", &l); l.Totals.Requests != 3 || len(one.tokens) > 0 {
		t.Errorf("local=1 gives %+v", l)
	}
	f.config.Admin.Peers = nil
	if f.get(t, "/api/v1/live", &l); l.Totals.Requests != 3 || len(one.tokens) > 0 {
		t.Errorf("without peers: %+v", l)
	}
	f.config.Admin.Peers = []string{one.at}
	for _, row := range []struct {
		page string
		code int
	}{{"/api/v1/live?sort=wrong", 400}, {"/api/v1/live?limit=0", 400}, {"/api/v1/top?top=0", 400}} {
		if code := f.get(t, row.page, &l); code != row.code {
			t.Errorf("%s is answered with %d", row.page, code)
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("ofthefile\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.config.Admin.PeersTokenFile = file
	for header, want := range map[string]string{"": "Bearer ofthefile", "Bearer ofthecaller": "Bearer ofthecaller"} {
		f.get(t, "/api/v1/live?sort=name", &l, "Authorization", header)
		got := map[string]bool{}
		for len(one.tokens) > 0 {
			got[<-one.tokens] = true
		}
		if !got[want] || got[""] {
			t.Errorf("with %q, the peer gets %v", header, got)
		}
	}
	f.config.Admin.PeersTokenFile = file + ".none"
	if code := f.get(t, "/api/v1/live?sort=passed", &l); code != http.StatusServiceUnavailable {
		t.Errorf("without the file, the answer is %d", code)
	}
}

// TestLists: history and keys are those of the fleet.
func TestLists(t *testing.T) {
	t.Parallel()
	one, two := startInstance(t, "hg-1", "127.0.0.1:0"), startInstance(t, "hg-2", "127.0.0.1:0")
	f := startFleet(t, one.at, two.at)
	f.until(t, "all answer", func(l *admin.Live) bool { return l.Totals.Requests == 23 })
	var h admin.History
	if f.get(t, "/api/v1/history?series=requests", &h); len(h.Series["requests"]) != 1 || *h.Series["requests"][0] != 3 || len(h.Instances) != 3 {
		t.Errorf("the history is %+v", h)
	}
	var top fleetTop
	if f.get(t, "/api/v1/top", &top); len(top.Keys) != 1 || top.Keys[0].Refusals != 12 || fmt.Sprint(top.Keys[0].By) != "[{hg-1 5} {hg-2 5} {own 2}]" {
		t.Errorf("the keys are %+v", top)
	}
}
