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

// memoryLimits is a limitStore in memory.
type memoryLimits struct {
	mu       sync.Mutex
	entries  map[string]etcd.Entry
	revision int64
	changed  chan struct{} // Closed at each change.
	fault    error         // The error of every call. nil means that calls succeed.
	meddle   func()        // Runs once, just before the next write: another operator's change.
}

func holding(entries ...etcd.Entry) *memoryLimits {
	h := &memoryLimits{entries: make(map[string]etcd.Entry), changed: make(chan struct{})}
	for _, e := range entries {
		h.entries[e.Provider] = e
		h.revision = max(h.revision, e.Revision)
	}
	return h
}

// change runs f with the lock held, and wakes the watches.
func (h *memoryLimits) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

// edit changes a copy of an entry, so that entries returned earlier stay the same.
func (h *memoryLimits) edit(provider string, f func(*etcd.Entry)) {
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

// limited sets a provider's limit, as another operator would.
func (h *memoryLimits) limited(provider string, count int64) {
	h.edit(provider, func(e *etcd.Entry) {
		h.revision++
		e.Limit, e.Revision = etcd.Limit{Count: count, Per: time.Second, Balance: etcd.Even}, h.revision
	})
}

func (h *memoryLimits) Get(ctx context.Context, provider string) (etcd.Entry, error) {
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

func (h *memoryLimits) List(ctx context.Context) ([]etcd.Entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]etcd.Entry, 0, len(h.entries))
	for _, e := range h.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b etcd.Entry) int { return strings.Compare(a.Provider, b.Provider) })
	return all, errors.Join(h.fault, ctx.Err())
}

// write changes the limit if it has the revision.
func (h *memoryLimits) write(provider string, revision int64, f func(*etcd.Entry)) error {
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

func (h *memoryLimits) Set(_ context.Context, provider string, l etcd.Limit, revision int64) (int64, error) {
	err := h.write(provider, revision, func(e *etcd.Entry) { e.Limit, e.Revision = l, h.revision })
	return h.revision, err
}

func (h *memoryLimits) Delete(_ context.Context, provider string, revision int64) error {
	return h.write(provider, revision, func(e *etcd.Entry) { e.Limit, e.Revision = etcd.Limit{}, 0 })
}

// Watch returns a fault at its start. It ignores later faults, as a watch of etcd does.
func (h *memoryLimits) Watch(ctx context.Context, provider string, f func(etcd.Entry)) error {
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

// session returns a session with text output on the limits.
func (h *memoryLimits) session() (s *limitSession, out, stderr *bytes.Buffer) {
	out, stderr = new(bytes.Buffer), new(bytes.Buffer)
	explain := func(err error) error { return fmt.Errorf("explained: %w", err) }
	return &limitSession{limits: h, out: out, errors: stderr, timeout: 5 * time.Second, explain: explain, now: time.Now}, out, stderr
}

// mail is a provider with a limit of 40000 per second, shared by the instances.
func mail(instances int) etcd.Entry {
	e := etcd.Entry{Provider: "mail", Limit: etcd.Limit{Count: 40_000, Per: time.Second, Balance: etcd.Even}, Revision: 17}
	e.Plan = &etcd.PlanInfo{Limit: 40_000, Per: time.Second, Instances: instances, Revision: 1234}
	for i := range instances {
		e.Members = append(e.Members, etcd.Member{ID: fmt.Sprintf("host-%d", i), Index: i})
	}
	return e
}

// ends compares a command's output and error.
func ends(t *testing.T, name string, out *bytes.Buffer, err error, want, wantErr string) {
	t.Helper()
	if out.String() != want {
		t.Errorf("%s: the output is\n%s\nwant\n%s", name, out, want)
	}
	switch {
	case wantErr == "" && err != nil, wantErr != "" && err == nil:
		t.Errorf("%s: the error is %v, want %q", name, err, wantErr)
	case err != nil && !strings.Contains(err.Error(), wantErr):
		t.Errorf("%s: the error is\n%v\nwant\n%s", name, err, wantErr)
	}
}

// TestSetLimit checks that a write replaces only the revision that was read. The output has
// the old and the new limit.
func TestSetLimit(t *testing.T) {
	fifty := etcd.Limit{Count: 50_000, Per: time.Second, Balance: etcd.Even}
	even := etcd.Limit{Count: 40_000, Per: time.Second, Balance: etcd.Even}
	other := func(h *memoryLimits) { h.meddle = func() { h.limited("mail", 700) } }
	gone := func(h *memoryLimits) {
		h.meddle = func() { h.edit("mail", func(e *etcd.Entry) { e.Revision = 0 }) }
	}
	for _, c := range []struct {
		name       string
		provider   string
		to         etcd.Limit
		ifRevision *int64
		before     func(*memoryLimits)
		out, err   string
		now        string // The limit afterwards.
	}{
		{"changed", "mail", fifty, nil, nil, "mail: 40000/1s (even), revision 17 -> 50000/1s (even), revision 18\n", "", "50000/1s (even), revision 18"},
		{"former balance", "old", even, nil, nil, "old: 40000/1s (demand), revision 17 -> 40000/1s (even), revision 18\n", "", "40000/1s (even), revision 18"},
		{"mended", "odd", fifty, nil, nil, "odd: no valid limit, revision 3 -> 50000/1s (even), revision 18\n", "", "50000/1s (even), revision 18"},
		{"same", "mail", mail(0).Limit, nil, nil, "mail: 40000/1s (even), revision 17 already\n", "", "40000/1s (even), revision 17"},
		{"new", "sms", fifty, nil, nil, "sms: no limit -> 50000/1s (even), revision 18\n", "", "50000/1s (even), revision 18"},
		{"new only", "sms", fifty, new(int64(0)), nil, "sms: no limit -> 50000/1s (even), revision 18\n", "", "50000/1s (even), revision 18"},
		{
			"new only, and there is one", "mail", fifty, new(int64(0)), nil, "",
			"nothing was done: mail has 40000/1s (even), revision 17 now, and not no limit", "40000/1s (even), revision 17",
		},
		{
			"another revision", "mail", fifty, new(int64(16)), nil, "",
			"nothing was done: mail has 40000/1s (even), revision 17 now, and not revision 16: another operator changed it. " +
				"To overwrite that change, repeat the command with --if-revision 17", "40000/1s (even), revision 17",
		},
		{
			"revision of none", "sms", fifty, new(int64(3)), nil, "",
			"nothing was done: sms has no limit now, and not revision 3: another operator changed it. To overwrite that change, " +
				"repeat the command with --if-revision 0", "no limit",
		},
		{"overtaken", "mail", fifty, nil, other, "", "mail has 700/1s (even), revision 18 now, and not revision 17", "700/1s (even), revision 18"},
		{"deleted meanwhile", "mail", fifty, nil, gone, "", "mail has no limit now, and not revision 17", "no limit"},
		{
			"refused", "mail", fifty, nil, func(h *memoryLimits) { h.meddle = func() { h.fault = errors.New("no such window") } }, "",
			"explained: no such window", "40000/1s (even), revision 17",
		},
		{"no etcd", "mail", fifty, nil, func(h *memoryLimits) { h.fault = errors.New("away") }, "", "explained: away", "40000/1s (even), revision 17"},
		{
			"no answer", "mail", fifty, nil, func(h *memoryLimits) { h.meddle = func() { h.fault = status.Error(codes.Unavailable, "away") } }, "",
			"away; it is unknown whether the change was made", "40000/1s (even), revision 17",
		},
	} {
		old := mail(0)
		old.Provider, old.Limit.Balance = "old", "demand"
		h := holding(mail(0), old, etcd.Entry{Provider: "odd", Revision: 3, Faults: []string{"odd/limit: no record"}})
		if c.before != nil {
			c.before(h)
		}
		s, out, _ := h.session()
		err := s.set(t.Context(), c.provider, c.to, c.ifRevision, 0)
		ends(t, c.name, out, err, c.out, c.err)
		if e := h.entries[c.provider]; entryLimit(&e) != c.now {
			t.Errorf("%s: afterwards the limit is %s, want %s", c.name, entryLimit(&e), c.now)
		}
	}
}

// TestSetWaits checks that the command waits until the limit is in force. It prints the time as
// soon as the time is known, and an error when the limit does not come into force.
func TestSetWaits(t *testing.T) {
	const set = "mail: 40000/1s (even), revision 17 -> 50000/1s (even), revision 18\n"
	planIn := func(ahead time.Duration) func(*memoryLimits) {
		return func(h *memoryLimits) {
			h.edit("mail", func(e *etcd.Entry) {
				e.Plan = &etcd.PlanInfo{Limit: 50_000, Per: time.Second, Instances: 96, From: time.Now().Add(ahead), Revision: 1300}
			})
		}
	}
	report := func(h *memoryLimits) {
		h.edit("mail", func(e *etcd.Entry) { e.Members[0].Demand++ })
	}
	for _, c := range []struct {
		name      string
		instances int
		acts      []func(*memoryLimits) // One act every 200 ms.
		out, err  string
		elapsed   time.Duration
	}{
		{
			"planned", 96,
			[]func(*memoryLimits){report, report, planIn(1400 * time.Millisecond)},
			set + "in force from 00:00:02Z (in 1.4s), 96 instances\n", "", 2 * time.Second,
		},
		{"in force", 96, []func(*memoryLimits){planIn(0)}, set + "in force since 00:00:00.2Z, 96 instances\n", "", 200 * time.Millisecond},
		{"far", 96, []func(*memoryLimits){planIn(time.Hour)}, set + "in force from 01:00:00.2Z (in 1h0m0s), 96 instances; not waiting that long\n", "", 200 * time.Millisecond},
		{"alone", 0, nil, set + "in force when an instance starts: no instance is running now\n", "", 0},
		{
			"nobody plans", 96,
			[]func(*memoryLimits){report, report},
			set, "after 10s none of 96 instances has planned it: check that they reach etcd: headgate ctl limit get mail", 10 * time.Second,
		},
		{
			"overtaken", 96,
			[]func(*memoryLimits){func(h *memoryLimits) { h.limited("mail", 700) }},
			set, "50000/1s (even) was set, and is 700/1s (even), revision 19 before it was in force: another operator has changed it", 200 * time.Millisecond,
		},
		{
			"deleted", 96,
			[]func(*memoryLimits){func(h *memoryLimits) { h.edit("mail", func(e *etcd.Entry) { e.Revision = 0 }) }},
			set, "deleted before it was in force", 200 * time.Millisecond,
		},
		{
			"etcd goes", 96,
			[]func(*memoryLimits){func(h *memoryLimits) { h.change(func() { h.fault = errors.New("away") }) }},
			set, "explained: away; 50000/1s (even) is set, and it is unknown whether the limit is in force", 10 * time.Second,
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
			if elapsed := time.Since(began); elapsed != c.elapsed {
				t.Errorf("%s: the command took %v, want %v", c.name, elapsed, c.elapsed)
			}
		})
	}
}

// TestSetInterrupted checks the error of an interrupted wait: the limit is set, but not in force.
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
			if err == nil || !strings.Contains(err.Error(), "50000/1s (even) is set, but the wait was interrupted before it was in force") {
				t.Errorf("planned %v: the error is %v", planned, err)
			}
		})
	}
}

// TestSetJSON checks that the output is one document, printed at the end, also after an error.
func TestSetJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := holding(mail(2))
		time.AfterFunc(time.Second, func() {
			h.edit("mail", func(e *etcd.Entry) { e.Plan.Limit, e.Plan.From, e.Plan.Revision = 5, time.Now().Add(time.Second), 1300 })
		})
		s, out, _ := h.session()
		s.json = true
		err := s.set(t.Context(), "mail", etcd.Limit{Count: 5, Per: time.Second}, nil, 10*time.Second)
		ends(t, "in force", out, err, `{"provider":"mail","before":{"count":40000,"per":"1s","balance":"even","revision":17,"valid":true},`+
			`"after":{"count":5,"per":"1s","balance":"even","revision":18,"valid":true},"changed":true,"in_force":true,`+
			`"plan":{"limit":5,"per":"1s","instances":2,"from":"2000-01-01T00:00:02Z","revision":1300}}`+"\n", "")
		out.Reset()
		err = s.set(t.Context(), "mail", etcd.Limit{Count: 6, Per: 24 * time.Hour}, nil, time.Second)
		ends(t, "not in force", out, err, `{"provider":"mail","before":{"count":5,"per":"1s","balance":"even","revision":18,"valid":true},`+
			`"after":{"count":6,"per":"1d","balance":"even","revision":19,"valid":true},"changed":true,"in_force":false,"plan":null}`+"\n", "after 1s none of 2 instances")
	})
}

// TestDeleteLimit checks that a deletion applies only to the revision that was read. The output
// has the number of instances that keep the limit.
func TestDeleteLimit(t *testing.T) {
	for _, c := range []struct {
		name       string
		provider   string
		instances  int
		ifRevision *int64
		before     func(*memoryLimits)
		out, err   string
	}{
		{"alone", "mail", 0, nil, nil, "mail: 40000/1s (even), revision 17 -> no limit\n", ""},
		{"shared", "mail", 3, new(int64(17)), nil, "mail: 40000/1s (even), revision 17 -> no limit\nrunning instances that keep the limit: 3; a limit of 0 stops their calls\n", ""},
		{"another revision", "mail", 0, new(int64(4)), nil, "", "nothing was done: mail has 40000/1s (even), revision 17 now, and not revision 4"},
		{"none", "sms", 0, nil, nil, "", "sms has no limit: set one, like headgate ctl limit set sms 1000/s"},
		{"overtaken", "mail", 0, nil, func(h *memoryLimits) { h.meddle = func() { h.limited("mail", 700) } }, "", "mail has 700/1s (even), revision 18 now"},
		{"no answer", "mail", 0, nil, func(h *memoryLimits) { h.meddle = func() { h.fault = status.Error(codes.Unavailable, "away") } }, "", "away; it is unknown whether the change was made"},
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
	ends(t, "for programs", out, s.delete(t.Context(), "mail", nil), `{"provider":"mail","before":{"count":40000,"per":"1s","balance":"even","revision":17,"valid":true},`+
		`"after":null,"changed":true,"in_force":false,"plan":null}`+"\n", "")
}
