package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
)

// TestLiveAndHistory: a proxy shows its requests in both calls.
func TestLiveAndHistory(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Config.Instance = "hg-1"
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	at := i.Addresses()
	for range 5 {
		get(t, at.Proxy+"/v1/x")
	}
	var l admin.Live
	eventually(t, "live shows two passed and three refused requests", func() bool {
		code, text := get(t, at.Admin+"/api/v1/live?sort=name")
		l = admin.Live{}
		if err := json.Unmarshal([]byte(text), &l); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		return int(l.Totals.Requests*float64(l.Window)+0.5) == 5
	})
	if l.Instance != "hg-1" || l.Version != "v1" || l.State != "serving" || l.RulesTotal != 1 || l.Rules[0].Name != "client" ||
		l.Rules[0].Since == nil || l.Rules[0].Top == "" || l.Totals.RefusedBy["rules"] != l.Totals.Refused {
		t.Errorf("live is %+v", l)
	}
	for name, want := range map[string]float64{"requests": 5, "passed": 2, "refused": 3, "rule.client.refused": 3, "answers.2xx": 2} {
		code, text := get(t, at.Admin+"/api/v1/history?tier=1s&series="+name)
		var h admin.History
		if err := json.Unmarshal([]byte(text), &h); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		sum := 0.0
		for _, v := range h.Series[name] {
			if v != nil {
				sum += *v
			}
		}
		if sum != want || h.Instance != "hg-1" || h.Step != 1 {
			t.Errorf("%s has %v in %d steps, want %v", name, sum, len(h.Series[name]), want)
		}
	}
}

// liveOf reads what an instance does now.
func liveOf(t *testing.T, i *Instance) *admin.Live {
	t.Helper()
	code, text := get(t, i.Addresses().Admin+"/api/v1/live")
	l := new(admin.Live)
	if err := json.Unmarshal([]byte(text), l); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	return l
}

// attends reports whether an instance wants attention of a level about something.
func attends(l *admin.Live, level, about string) bool {
	return slices.ContainsFunc(l.Attention, func(a admin.Attention) bool { return a.Level == level && a.About == about })
}

// TestAttention: a failed reload, a setting that waits for a restart, a mode of the run time, and a store that does not answer want
// attention until they are over.
func TestAttention(t *testing.T) {
	t.Parallel()
	o := options(t)
	first := *o.Config
	next, failure := &first, errors.New("headgate.yaml:1:1: odd")
	o.Load = func() (*config.Config, error) { return next, failure }
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	before := liveOf(t, i)
	if before.AttentionTotal != 0 || len(before.Config) != 16 {
		t.Errorf("at the start: %+v", before)
	}
	_ = i.Reload()
	eventually(t, "a fault about the reload", func() bool { return attends(liveOf(t, i), admin.LevelFault, "reload") })
	failure = nil
	changed, err := config.Parse("test.yaml", fmt.Appendf(nil, "version: 1\nmax_memory: 2MiB\nmode: shadow\nrules: []\n"+
		"proxy: {listen: \"127.0.0.1:0\", upstream: %q}\nadmin: {listen: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}\n", o.Config.Proxy.Upstream))
	if err != nil {
		t.Fatal(err)
	}
	next = changed
	if err := i.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "only a note about the restart", func() bool {
		l := liveOf(t, i)
		return attends(l, admin.LevelNote, "reload") && !attends(l, admin.LevelFault, "reload") &&
			slices.Equal(l.PendingRestart, []string{"max_memory"}) && l.Config != before.Config
	})
}

// TestAttentionOfTheStore: a store that does not answer is a fault, and the sentence begins with it.
func TestAttentionOfTheStore(t *testing.T) {
	t.Parallel()
	o := options(t)
	c, err := config.Parse("test.yaml", fmt.Appendf(nil, `version: 1
max_memory: 8MiB
store: redis://127.0.0.1:1
fallback: allow
rules: [{name: client, key: [header:X-Client-Id], limits: [5/1h]}]
proxy: {listen: "127.0.0.1:0", upstream: %q}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`, o.Config.Proxy.Upstream))
	if err != nil {
		t.Fatal(err)
	}
	o.Config = c
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	eventually(t, "a fault about the store", func() bool {
		get(t, i.Addresses().Proxy)
		l := liveOf(t, i)
		return attends(l, admin.LevelFault, "store") && strings.HasPrefix(l.Sentence, "The store server 127.0.0.1:1 is not used") &&
			len(l.Stores) == 1 && l.Stores[0].State != "closed"
	})
}
