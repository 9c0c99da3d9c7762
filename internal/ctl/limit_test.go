package ctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/pace/etcd"
)

// heldLimits is a limitStore in memory.
type heldLimits struct {
	mu       sync.Mutex
	entries  map[string]etcd.Entry
	revision int64
	changed  chan struct{} // closed at each change
	fault    error         // of every question; nil is none
	meddle   func()        // what somebody else does just before the next order
}

func holding(entries ...etcd.Entry) *heldLimits {
	h := &heldLimits{entries: make(map[string]etcd.Entry), changed: make(chan struct{})}
	for _, e := range entries {
		h.entries[e.Provider] = e
		h.revision = max(h.revision, e.Revision)
	}
	return h
}

// change changes what is held, as somebody else does.
func (h *heldLimits) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

// edit changes a provider. What was told of it before stays as it was told.
func (h *heldLimits) edit(provider string, f func(*etcd.Entry)) {
	h.change(func() {
		e := h.entries[provider]
		e.Provider, e.Members = provider, slices.Clone(e.Members)
		if e.Plan != nil {
			p := *e.Plan
			e.Plan = &p
		}
		f(&e)
		h.entries[provider] = e
	})
}

// limited gives a provider a limit, as somebody else does.
func (h *heldLimits) limited(provider string, count int64) {
	h.edit(provider, func(e *etcd.Entry) {
		h.revision++
		e.Limit, e.Revision = etcd.Limit{Count: count, Per: time.Second, Balance: etcd.Even}, h.revision
	})
}

func (h *heldLimits) Get(ctx context.Context, provider string) (etcd.Entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, found := h.entries[provider]
	switch {
	case h.fault != nil:
		return e, h.fault
	case !found:
		return e, fmt.Errorf("%w: %s", etcd.ErrNotFound, provider)
	}
	return e, ctx.Err()
}

func (h *heldLimits) List(ctx context.Context) ([]etcd.Entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]etcd.Entry, 0, len(h.entries))
	for _, e := range h.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b etcd.Entry) int { return strings.Compare(a.Provider, b.Provider) })
	return all, errors.Join(h.fault, ctx.Err())
}

// order carries out a change of a limit that has the revision.
func (h *heldLimits) order(provider string, revision int64, f func(*etcd.Entry)) error {
	if meddle := h.meddle; meddle != nil {
		h.meddle = nil
		meddle()
	}
	if h.fault != nil {
		return h.fault
	}
	err := error(nil)
	h.edit(provider, func(e *etcd.Entry) {
		if e.Revision != revision {
			err = fmt.Errorf("%w (%s)", etcd.ErrConflict, provider)
			return
		}
		h.revision++
		f(e)
	})
	return err
}

func (h *heldLimits) Set(_ context.Context, provider string, l etcd.Limit, revision int64) (int64, error) {
	err := h.order(provider, revision, func(e *etcd.Entry) { e.Limit, e.Revision = l, h.revision })
	return h.revision, err
}

func (h *heldLimits) Delete(_ context.Context, provider string, revision int64) error {
	return h.order(provider, revision, func(e *etcd.Entry) { e.Limit, e.Revision = etcd.Limit{}, 0 })
}

// Watch fails to begin while there is a fault, and is silent when one comes later.
func (h *heldLimits) Watch(ctx context.Context, provider string, f func(etcd.Entry)) error {
	for begun := false; ; begun = true {
		h.mu.Lock()
		e, changed, fault := h.entries[provider], h.changed, h.fault
		h.mu.Unlock()
		e.Provider = provider
		switch {
		case fault == nil:
			f(e)
		case !begun:
			return fault
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// session works on held limits, for people.
func (h *heldLimits) session() (s *limitSession, out, told *bytes.Buffer) {
	out, told = new(bytes.Buffer), new(bytes.Buffer)
	explain := func(err error) error { return fmt.Errorf("explained: %w", err) }
	return &limitSession{limits: h, out: out, errors: told, timeout: 5 * time.Second, explain: explain, now: time.Now}, out, told
}

// mail is a provider with a limit of 40000 a second, which so many instances share.
func mail(instances int) etcd.Entry {
	e := etcd.Entry{Provider: "mail", Limit: etcd.Limit{Count: 40_000, Per: time.Second, Balance: etcd.Demand}, Revision: 17}
	e.Plan = &etcd.PlanInfo{Limit: 40_000, Per: time.Second, Instances: instances, Revision: 1234}
	for i := range instances {
		e.Members = append(e.Members, etcd.Member{ID: fmt.Sprintf("host-%d", i), Index: i})
	}
	return e
}

// ends checks what a command has printed, and the error that it has ended with.
func ends(t *testing.T, name string, out *bytes.Buffer, err error, want, wantErr string) {
	t.Helper()
	if out.String() != want {
		t.Errorf("%s: it prints\n%s\nwant\n%s", name, out, want)
	}
	switch {
	case wantErr == "" && err != nil, wantErr != "" && err == nil:
		t.Errorf("%s: it ends with %v, want %q", name, err, wantErr)
	case err != nil && !strings.Contains(err.Error(), wantErr):
		t.Errorf("%s: it ends with\n%v\nwant\n%s", name, err, wantErr)
	}
}

// TestSetLimit: a limit is written over the one that was read, and over no other; what was
// and what is are told.
func TestSetLimit(t *testing.T) {
	fifty := etcd.Limit{Count: 50_000, Per: time.Second}
	even := etcd.Limit{Count: 40_000, Per: time.Second, Balance: etcd.Even}
	other := func(h *heldLimits) { h.meddle = func() { h.limited("mail", 700) } }
	gone := func(h *heldLimits) {
		h.meddle = func() { h.edit("mail", func(e *etcd.Entry) { e.Revision = 0 }) }
	}
	for _, c := range []struct {
		name       string
		provider   string
		to         etcd.Limit
		ifRevision *int64
		before     func(*heldLimits)
		out, err   string
		now        string // what the limit is then
	}{
		{"changed", "mail", fifty, nil, nil, "mail: 40000/1s (demand), revision 17 -> 50000/1s (demand), revision 18\n", "", "50000/1s (demand), revision 18"},
		{"balance", "mail", even, new(int64(17)), nil, "mail: 40000/1s (demand), revision 17 -> 40000/1s (even), revision 18\n", "", "40000/1s (even), revision 18"},
		{"mended", "odd", fifty, nil, nil, "odd: no valid limit, revision 3 -> 50000/1s (even), revision 18\n", "", "50000/1s (even), revision 18"},
		{"same", "mail", mail(0).Limit, nil, nil, "mail: 40000/1s (demand), revision 17 already\n", "", "40000/1s (demand), revision 17"},
		{"new", "sms", fifty, nil, nil, "sms: no limit -> 50000/1s (even), revision 18\n", "", "50000/1s (even), revision 18"},
		{"new only", "sms", fifty, new(int64(0)), nil, "sms: no limit -> 50000/1s (even), revision 18\n", "", "50000/1s (even), revision 18"},
		{
			"new only, and there is one", "mail", fifty, new(int64(0)), nil, "",
			"nothing was done: mail has 40000/1s (demand), revision 17 now, and not no limit", "40000/1s (demand), revision 17",
		},
		{
			"another revision", "mail", fifty, new(int64(16)), nil, "",
			"nothing was done: mail has 40000/1s (demand), revision 17 now, and not revision 16: somebody else was first. " +
				"If the change is still right, make it again with --if-revision 17", "40000/1s (demand), revision 17",
		},
		{
			"revision of none", "sms", fifty, new(int64(3)), nil, "",
			"nothing was done: sms has no limit now, and not revision 3: somebody else was first. If the change is still right, " +
				"make it again with --if-revision 0", "no limit",
		},
		{"overtaken", "mail", fifty, nil, other, "", "mail has 700/1s (even), revision 18 now, and not revision 17", "700/1s (even), revision 18"},
		{"deleted meanwhile", "mail", fifty, nil, gone, "", "mail has no limit now, and not revision 17", "no limit"},
		{
			"refused", "mail", fifty, nil, func(h *heldLimits) { h.meddle = func() { h.fault = errors.New("no such window") } }, "",
			"explained: no such window", "40000/1s (demand), revision 17",
		},
		{"no etcd", "mail", fifty, nil, func(h *heldLimits) { h.fault = errors.New("away") }, "", "explained: away", "40000/1s (demand), revision 17"},
		{
			"no answer", "mail", fifty, nil, func(h *heldLimits) { h.meddle = func() { h.fault = status.Error(codes.Unavailable, "away") } }, "",
			"away; whether it was done is not known", "40000/1s (demand), revision 17",
		},
	} {
		h := holding(mail(0), etcd.Entry{Provider: "odd", Revision: 3, Faults: []string{"odd/limit: no record"}})
		if c.before != nil {
			c.before(h)
		}
		s, out, _ := h.session()
		err := s.set(t.Context(), c.provider, c.to, c.ifRevision, 0)
		ends(t, c.name, out, err, c.out, c.err)
		if e := h.entries[c.provider]; entryLimit(&e) != c.now {
			t.Errorf("%s: the limit is %s then, want %s", c.name, entryLimit(&e), c.now)
		}
	}
}

// TestSetWaits: a command that sets a limit ends when the limit is in force, says from when on
// it will be as soon as that is known, and says why when it does not come to it.
func TestSetWaits(t *testing.T) {
	const set = "mail: 40000/1s (demand), revision 17 -> 50000/1s (demand), revision 18\n"
	planIn := func(ahead time.Duration) func(*heldLimits) {
		return func(h *heldLimits) {
			h.edit("mail", func(e *etcd.Entry) {
				e.Plan = &etcd.PlanInfo{Limit: 50_000, Per: time.Second, Instances: 96, From: time.Now().Add(ahead), Revision: 1300}
			})
		}
	}
	report := func(h *heldLimits) {
		h.edit("mail", func(e *etcd.Entry) { e.Members[0].Demand++ })
	}
	for _, c := range []struct {
		name      string
		instances int
		acts      []func(*heldLimits) // one each 200 ms
		out, err  string
		took      time.Duration
	}{
		{
			"planned", 96,
			[]func(*heldLimits){report, report, planIn(1400 * time.Millisecond)},
			set + "in force from 00:00:02Z (in 1.4s), 96 instances\n", "", 2 * time.Second,
		},
		{"in force", 96, []func(*heldLimits){planIn(0)}, set + "in force since 00:00:00.2Z, 96 instances\n", "", 200 * time.Millisecond},
		{"far", 96, []func(*heldLimits){planIn(time.Hour)}, set + "in force from 01:00:00.2Z (in 1h0m0s), 96 instances; that is not waited for\n", "", 200 * time.Millisecond},
		{"alone", 0, nil, set + "in force when an instance lives: now none does\n", "", 0},
		{
			"nobody plans", 96,
			[]func(*heldLimits){report, report},
			set, "after 10s none of 96 instances has made a plan of it: do they reach etcd? headgate ctl limit get mail", 10 * time.Second,
		},
		{
			"overtaken", 96,
			[]func(*heldLimits){func(h *heldLimits) { h.limited("mail", 700) }},
			set, "50000/1s (demand) was set, and is 700/1s (even), revision 19 before it was in force: somebody else has changed it", 200 * time.Millisecond,
		},
		{
			"deleted", 96,
			[]func(*heldLimits){func(h *heldLimits) { h.edit("mail", func(e *etcd.Entry) { e.Revision = 0 }) }},
			set, "deleted before it was in force", 200 * time.Millisecond,
		},
		{
			"etcd goes", 96,
			[]func(*heldLimits){func(h *heldLimits) { h.change(func() { h.fault = errors.New("away") }) }},
			set, "explained: away; 50000/1s (demand) is set, and whether it is in force is not known", 10 * time.Second,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := holding(mail(c.instances))
			began := time.Now()
			for i, act := range c.acts {
				time.AfterFunc(time.Duration(i+1)*200*time.Millisecond, func() { act(h) })
			}
			s, out, _ := h.session()
			err := s.set(t.Context(), "mail", etcd.Limit{Count: 50_000, Per: time.Second}, nil, 10*time.Second)
			ends(t, c.name, out, err, c.out, c.err)
			if took := time.Since(began); took != c.took {
				t.Errorf("%s: it took %v, want %v", c.name, took, c.took)
			}
		})
	}
}

// TestSetInterrupted: who ends the wait knows that the limit is set, and not in force.
func TestSetInterrupted(t *testing.T) {
	for _, planned := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			h := holding(mail(3))
			if planned {
				time.AfterFunc(time.Millisecond, func() {
					h.edit("mail", func(e *etcd.Entry) { e.Plan.Limit, e.Plan.From = 50_000, time.Now().Add(5*time.Second) })
				})
			}
			s, _, _ := h.session()
			err := s.set(ctx, "mail", etcd.Limit{Count: 50_000, Per: time.Second}, nil, 10*time.Second)
			if err == nil || !strings.Contains(err.Error(), "50000/1s (demand) is set, and the wait was ended before it was in force") {
				t.Errorf("planned %v: it ends with %v", planned, err)
			}
		})
	}
}

// TestSetJSON: programs get one document, at the end, with an error too.
func TestSetJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := holding(mail(2))
		time.AfterFunc(time.Second, func() {
			h.edit("mail", func(e *etcd.Entry) { e.Plan.Limit, e.Plan.From, e.Plan.Revision = 5, time.Now().Add(time.Second), 1300 })
		})
		s, out, _ := h.session()
		s.json = true
		err := s.set(t.Context(), "mail", etcd.Limit{Count: 5, Per: time.Second}, nil, 10*time.Second)
		ends(t, "in force", out, err, `{"provider":"mail","before":{"count":40000,"per":"1s","balance":"demand","revision":17,"valid":true},`+
			`"after":{"count":5,"per":"1s","balance":"demand","revision":18,"valid":true},"changed":true,"in_force":true,`+
			`"plan":{"limit":5,"per":"1s","instances":2,"from":"2000-01-01T00:00:02Z","revision":1300}}`+"\n", "")
		out.Reset()
		err = s.set(t.Context(), "mail", etcd.Limit{Count: 6, Per: 24 * time.Hour}, nil, time.Second)
		ends(t, "not in force", out, err, `{"provider":"mail","before":{"count":5,"per":"1s","balance":"demand","revision":18,"valid":true},`+
			`"after":{"count":6,"per":"1d","balance":"demand","revision":19,"valid":true},"changed":true,"in_force":false,"plan":null}`+"\n", "after 1s none of 2 instances")
	})
}

// TestDeleteLimit: a limit is deleted that was read, and no other, and it is told who goes on with it.
func TestDeleteLimit(t *testing.T) {
	for _, c := range []struct {
		name       string
		provider   string
		instances  int
		ifRevision *int64
		before     func(*heldLimits)
		out, err   string
	}{
		{"alone", "mail", 0, nil, nil, "mail: 40000/1s (demand), revision 17 -> no limit\n", ""},
		{"shared", "mail", 3, new(int64(17)), nil, "mail: 40000/1s (demand), revision 17 -> no limit\ninstances that live keep it: 3; a limit of 0 stops them\n", ""},
		{"another revision", "mail", 0, new(int64(4)), nil, "", "nothing was done: mail has 40000/1s (demand), revision 17 now, and not revision 4"},
		{"none", "sms", 0, nil, nil, "", "sms has no limit: set one, like headgate ctl limit set sms 1000/s"},
		{"overtaken", "mail", 0, nil, func(h *heldLimits) { h.meddle = func() { h.limited("mail", 700) } }, "", "mail has 700/1s (even), revision 18 now"},
		{"no answer", "mail", 0, nil, func(h *heldLimits) { h.meddle = func() { h.fault = status.Error(codes.Unavailable, "away") } }, "", "away; whether it was done is not known"},
	} {
		h := holding(mail(c.instances))
		if c.before != nil {
			c.before(h)
		}
		s, out, _ := h.session()
		ends(t, c.name, out, s.delete(t.Context(), c.provider, c.ifRevision), c.out, c.err)
		if deleted := h.entries["mail"].Revision == 0; deleted != (c.err == "") {
			t.Errorf("%s: deleted is %v", c.name, deleted)
		}
	}
	s, out, _ := holding(mail(3)).session()
	s.json = true
	ends(t, "for programs", out, s.delete(t.Context(), "mail", nil), `{"provider":"mail","before":{"count":40000,"per":"1s","balance":"demand","revision":17,"valid":true},`+
		`"after":null,"changed":true,"in_force":false,"plan":null}`+"\n", "")
}
