package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// member is an instance of a fleet, which answers with documents.
type member struct {
	at    string
	pages map[string]any

	mu   sync.Mutex
	sent []string // the changes that it got
}

// startMember starts an instance. place is the place of its source, and node the address of its store; "" is none.
func startMember(t *testing.T, name, place, node string, pages map[string]any) *member {
	t.Helper()
	m := &member{pages: pages}
	status := admin.Status{Version: "v1", State: "serving", Store: admin.StoreStatus{Kind: "memory"}}
	if place != "" {
		status.Source = &admin.SourceStatus{Kind: "etcd", Place: place}
	}
	if node != "" {
		status.Store = admin.StoreStatus{Kind: "redis", Nodes: []admin.NodeStatus{{Address: node}}}
	}
	status.Rules = []admin.RuleStatus{{Name: "search", Mode: "enforce", Limits: []string{"5/s"}, Refused: uint64(len(name))}}
	if _, given := m.pages[statusPage]; !given {
		m.pages[statusPage] = status
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(admin.InstanceHeader, name)
		if r.Method != http.MethodGet {
			text, _ := io.ReadAll(r.Body)
			m.mu.Lock()
			m.sent = append(m.sent, r.Method+" "+r.URL.Path+" "+string(text))
			m.mu.Unlock()
		}
		merged := r.URL.Path == "/api/v1/top" || r.URL.Path == "/api/v1/bans"
		if merged && r.URL.Query().Get(admin.Local) != "1" {
			t.Errorf("%s is asked for its peers too", r.URL)
		}
		page, found := m.pages[r.URL.Path]
		if !found {
			http.Error(w, "no such ban: the ban may have expired", http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	t.Cleanup(server.Close)
	m.at = strings.TrimPrefix(server.URL, "http://")
	return m
}

func (m *member) changes() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.sent)
}

// closedAddress is an address at which nothing listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	return strings.TrimPrefix(server.URL, "http://")
}

// TestFleetShows: tables name the instances, an instance that does not answer is named by the error, and the others are shown.
func TestFleetShows(t *testing.T) {
	t.Parallel()
	now := time.Now()
	top := func(refusals uint64) admin.Top {
		return admin.Top{TopKeys: report.TopKeys{Since: now, Total: refusals, Keys: []report.TopKey{
			{Rule: "search", Key: "header:X-Client-Id=acme", Refusals: refusals, Error: 1},
		}}}
	}
	bans := func(ids ...string) admin.Bans {
		b := admin.Bans{Now: now}
		for _, id := range ids {
			b.Bans = append(b.Bans, guard.BanEntry{ID: id, Rule: "login", Key: "ip=192.0.2.1", Until: now.Add(time.Minute)})
		}
		return b
	}
	shares := func(demand int64) admin.Shares {
		return admin.Shares{Capacity: 40, Clients: []admin.ClientShare{{Client: "acme", Demand: demand, Size: 20}}}
	}
	one := startMember(t, "hg-1", "", "", map[string]any{"/api/v1/top": top(7), "/api/v1/bans": bans("a", "b"), "/api/v1/shares": shares(3)})
	two := startMember(t, "hg-2", "", "", map[string]any{"/api/v1/top": top(30), "/api/v1/bans": bans("b"), "/api/v1/shares": shares(4)})
	gone := closedAddress(t)
	for _, row := range []struct {
		name string
		show func(f *Fleet, out io.Writer) error
		want []string
	}{
		{"status", func(f *Fleet, out io.Writer) error { return f.Status(t.Context(), out) }, []string{
			"INSTANCE  ADDRESS", "hg-1      " + one.at, "hg-2      " + two.at, "search  hg-1      enforce  5/s", "search  hg-2      enforce  5/s",
		}},
		{"top", func(f *Fleet, out io.Writer) error { return f.Top(t.Context(), out, "", 20) }, []string{
			"37        2                    search  header:X-Client-Id=acme  hg-2 30, hg-1 7", "37 refusals", "2 instances",
		}},
		{"bans", func(f *Fleet, out io.Writer) error { return f.Bans(t.Context(), out) }, []string{
			"a   1m0s     login  ip=192.0.2.1  hg-1\n", "b   1m0s     login  ip=192.0.2.1  all\n",
		}},
		{"shares", func(f *Fleet, out io.Writer) error { return f.Shares(t.Context(), &Shares{Out: out}) }, []string{
			"capacity 80 in 2 instances", "acme    7       40 ", "acme    3       20 ", "hg-2",
		}},
	} {
		var out bytes.Buffer
		f := &Fleet{Instance: Instance{Admin: one.at + ", " + gone + "," + two.at + "," + one.at}}
		err := row.show(f, &out)
		if err == nil || strings.Count(err.Error(), "nothing answers on "+gone) != 1 {
			t.Errorf("%s: the error is %v", row.name, err)
		}
		for _, want := range row.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s has no %q:\n%s", row.name, want, out.String())
			}
		}
		out.Reset()
		f.JSON = true
		err = row.show(f, &out)
		var list []admin.From[map[string]any]
		if json.Unmarshal(out.Bytes(), &list) != nil || len(list) != 3 || err == nil {
			t.Fatalf("%s as JSON: %v\n%s", row.name, err, out.String())
		}
		if list[0].Instance != "hg-1" || list[2].Instance != "hg-2" || list[1].Instance != gone || list[1].Error == "" || list[0].Answer == nil {
			t.Errorf("%s as JSON has %+v", row.name, list)
		}
	}
}

// TestFleetByName: dns: stands for all addresses of a name, also for one.
func TestFleetByName(t *testing.T) {
	t.Parallel()
	one := startMember(t, "hg-1", "", "", map[string]any{})
	host, port, _ := strings.Cut(one.at, ":")
	for _, row := range []struct {
		admin, want string
		found       []string
		err         error
	}{
		{"dns:headgate.example:" + port, "hg-1", []string{host}, nil},
		{"dns:http://headgate.example:" + port, "hg-1", []string{host}, nil},
		{"dns:headgate.example:" + port + "," + one.at, "hg-1", []string{host}, nil},
		{"dns:headgate.example:" + port, "no such host: check the name", nil, errors.New("no such host")},
		{"dns:headgate.example", "has no name and port", nil, nil},
		{"dns::9902", "has no name and port", nil, nil},
	} {
		var out bytes.Buffer
		f := &Fleet{Instance: Instance{Admin: row.admin}, Resolve: func(_ context.Context, name string) ([]string, error) {
			if name != "headgate.example" {
				t.Errorf("the name is %s", name)
			}
			return row.found, row.err
		}}
		if err := f.Status(t.Context(), &out); err != nil {
			_, _ = fmt.Fprint(&out, err)
		}
		if !strings.Contains(out.String(), row.want) || strings.Count(out.String(), "v1") > 1 {
			t.Errorf("%s gives\n%s", row.admin, out.String())
		}
	}
}

// TestFleetChanges: a change goes to one instance of those that share a place, and to each that has its own.
func TestFleetChanges(t *testing.T) {
	t.Parallel()
	lists := func() map[string]any {
		return map[string]any{modePage: admin.Modes{}, "/api/v1/bans/a": "lifted", "/api/v1/reload": admin.ReloadStatus{}}
	}
	one, two := startMember(t, "hg-1", "10.0.0.1:2379", "10.0.0.2:6379", lists()), startMember(t, "hg-2", "10.0.0.1:2379", "10.0.0.2:6379", lists())
	alone := startMember(t, "hg-3", "", "", map[string]any{modePage: admin.Modes{}, "/api/v1/reload": admin.ReloadStatus{}})
	var notes bytes.Buffer
	fleet := func() *Fleet {
		notes.Reset()
		return &Fleet{Instance: Instance{Admin: one.at + "," + two.at + "," + alone.at}, Errors: &notes}
	}
	mode := &admin.ModeChange{Mode: "shadow"}
	for _, row := range []struct {
		name string
		do   func(f *Fleet, out io.Writer) error
		want [3]int // changes of each
		text []string
		note string
	}{
		{
			"mode", func(f *Fleet, out io.Writer) error { return f.SetMode(t.Context(), out, mode) },
			[3]int{1, 0, 1},
			[]string{"hg-1 (" + one.at + "):\n", "hg-3 ("},
			"hg-1 (" + one.at + ") makes the change for 2 instances that share etcd 10.0.0.1:2379",
		},
		{"mode --here", func(f *Fleet, out io.Writer) error {
			return f.SetMode(t.Context(), out, &admin.ModeChange{Mode: "shadow", Here: true})
		}, [3]int{1, 1, 1}, []string{"hg-1 (", "hg-2 (", "hg-3 ("}, ""},
		{
			"lift", func(f *Fleet, out io.Writer) error { return f.Lift(t.Context(), out, []string{"a"}, Terms{}) },
			[3]int{1, 0, 1},
			[]string{"a is lifted by hg-1\n"},
			"2 instances that share 10.0.0.2:6379",
		},
		{
			"reload", func(f *Fleet, out io.Writer) error { return f.Reload(t.Context(), out) },
			[3]int{1, 1, 1},
			[]string{"hg-1 (", "hg-2 (", "hg-3 ("},
			"",
		},
	} {
		var out bytes.Buffer
		before := [3]int{len(one.changes()), len(two.changes()), len(alone.changes())}
		if err := row.do(fleet(), &out); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		for i, m := range []*member{one, two, alone} {
			if got := len(m.changes()) - before[i]; got != row.want[i] {
				t.Errorf("%s: instance %d got %d changes, want %d", row.name, i+1, got, row.want[i])
			}
		}
		for _, text := range row.text {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s prints %q, without %q", row.name, out.String(), text)
			}
		}
		if !strings.Contains(notes.String(), row.note) {
			t.Errorf("%s notes %q", row.name, notes.String())
		}
	}
	if err := fleet().Lift(t.Context(), io.Discard, []string{"none"}, Terms{}); err == nil || !strings.Contains(err.Error(), "no such ban") {
		t.Errorf("lifting an unknown ban gives %v", err)
	}
}

// TestFleetOne: what instances share is asked of the first that answers.
func TestFleetOne(t *testing.T) {
	t.Parallel()
	one, gone := startMember(t, "hg-1", "", "", map[string]any{modePage: admin.Modes{}}), closedAddress(t)
	var notes bytes.Buffer
	f := &Fleet{Instance: Instance{Admin: gone + "," + one.at}, Errors: &notes}
	got, err := f.One(t.Context())
	if err != nil || got.Admin != one.at || !strings.Contains(notes.String(), "hg-1 ("+one.at+") is asked, 1 of 2 instances") {
		t.Errorf("got %+v, %v, %q", got, err, notes.String())
	}
	f = &Fleet{Instance: Instance{Admin: gone + "," + closedAddress(t)}}
	if _, err := f.One(t.Context()); err == nil || strings.Count(err.Error(), "nothing answers") != 2 {
		t.Errorf("without an instance that answers: %v", err)
	}
	f = &Fleet{Instance: Instance{Admin: one.at}, Errors: &notes}
	notes.Reset()
	if got, err := f.One(t.Context()); err != nil || got.Admin != one.at || notes.Len() > 0 {
		t.Errorf("one instance gives %+v, %v, %q", got, err, notes.String())
	}
}
