package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/fairshare"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// sharing returns the configuration of o with a fair share. "" means no fair share.
func sharing(t *testing.T, o Options, fairShare string) *config.Config {
	t.Helper()
	if fairShare != "" {
		fairShare = "fair_share: {client: header:X-Client-Id, " + fairShare + "}"
	}
	c, err := config.Parse("test.yaml", fmt.Appendf(nil, `version: 1
max_memory: 1MiB
rules: []
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
%s
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`, o.Config.Proxy.Upstream, fairShare))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// as sends a request of a client and returns the status of the answer.
func as(t *testing.T, url, client string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Client-Id", client)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestShares checks the JSON of the admin listener, including the order of its fields. The
// status and the metrics must agree with it.
func TestShares(t *testing.T) {
	o := options(t)
	o.Config = sharing(t, o, "capacity: 4, cycle: 1h, weights: {quiet: 1}, reclaim: next_cycle")
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	at := i.Addresses()
	for n, want := range []int{200, 200, 429} {
		if got := as(t, at.Proxy, "loud"); got != want {
			t.Errorf("request %d is answered with %d, want %d", n+1, got, want)
		}
	}
	if status, _ := get(t, at.Proxy); status != http.StatusTooManyRequests {
		t.Errorf("a request without a client is answered with %d", status)
	}
	_, text := get(t, at.Admin+"/api/v1/shares")
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(text)); err != nil {
		t.Fatal(err)
	}
	const first = `{"cycle":1,"capacity":4,"clients":[` +
		`{"client":"loud","demand":0,"size":2,"borrowed":0,"lent":0,"seen":3,"admitted":2,"refused":1,"weight":1,"default":2,"pinned":false,"lasting":false,` +
		`"admitted_total":2,"refused_total":1},` +
		`{"client":"quiet","demand":0,"size":2,"borrowed":0,"lent":0,"seen":0,"admitted":0,"refused":0,"weight":1,"default":2,"pinned":true,"lasting":false,` +
		`"admitted_total":0,"refused_total":0}],` +
		`"mode":"enforce","division":"loan","reclaim":"next_cycle","cycle_seconds":3600,"started":"`
	if !strings.HasPrefix(line.String(), first) {
		t.Errorf("the shares are\n%s\nwant them to begin with\n%s", line.String(), first)
	}
	var s admin.Status
	if _, text := get(t, at.Admin+"/api/v1/status"); json.Unmarshal([]byte(text), &s) != nil || s.FairShare == nil {
		t.Fatalf("the status has no fair share: %s", text)
	}
	if f := s.FairShare; f.Mode != "enforce" || f.Capacity != 4 || f.CycleSeconds != 3600 || f.Clients != 2 || f.Allowed != 2 ||
		f.Refused != 2 || f.Reasons["over_share"] != 1 || f.Reasons["anonymous_client"] != 1 {
		t.Errorf("the status is %+v", f)
	}
	_, text = get(t, at.Health+"/metrics")
	for _, want := range []string{
		"headgate_share_capacity_units 4", "headgate_share_shadow 0", "headgate_share_anonymous_total 1",
		`headgate_share_refused_units_total{client="loud"} 1`,
		`headgate_decisions_total{mode="enforce",reason="over_share",rule="fair_share",verdict="deny"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestNamesStay checks that later clients do not change the name of an earlier client.
func TestNamesStay(t *testing.T) {
	o := options(t)
	o.Config = sharing(t, o, "capacity: 100, cycle: 1h")
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	names := []string{"A", "B", "C", "client-with-a-longer-name"}
	for _, name := range names {
		as(t, i.Addresses().Proxy, name)
	}
	var s admin.Shares
	for _, c := range i.components {
		if shares, found := c.(*fairshare.Component); found {
			s, _ = shares.List()
		}
	}
	var got []string
	for _, c := range s.Clients {
		got = append(got, c.Client)
	}
	if !slices.Equal(got, names) {
		t.Errorf("the clients are %q, want %q", got, names)
	}
}

// TestReloadShares checks that a reload starts and ends shadow mode and fair share, and changes
// settings. While fair share is on, it remembers its clients. Each change is logged.
func TestReloadShares(t *testing.T) {
	var log logs.Text
	o := options(t)
	o.Log = log.Logger()
	next := sharing(t, o, "capacity: 1, cycle: 1h")
	o.Load = func() (*config.Config, error) { return next, nil }
	o.Config = next
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	at := i.Addresses()
	if got := as(t, at.Proxy, "A"); got != http.StatusOK {
		t.Fatalf("the first request is answered with %d", got)
	}
	if text := log.Take(); !strings.Contains(text, `msg="fair share" capacity=1 cycle=1h0m0s mode=enforce`) || strings.Contains(text, "shadow is") {
		t.Errorf("the start logs %s", text)
	}
	for _, step := range []struct {
		fairShare string
		status    int    // The status of a further request of client A.
		page      int    // The status of /api/v1/shares.
		says      string // Texts that the log has and has not.
		never     string
	}{
		{"capacity: 1, cycle: 1h", 429, 200, "the configuration was reloaded", `msg="fair share"`},
		{"capacity: 1, cycle: 1h, mode: shadow", 200, 200, "shadow is on", "shadow is off"},
		{"capacity: 3, cycle: 1h, mode: shadow", 200, 200, "capacity=3 ", "shadow is"},
		{"capacity: 3, cycle: 1h", 200, 200, "shadow is off", "shadow is on"}, // Two of three units are already used.
		{"", 200, 404, "fair share has ended", "capacity"},
		{"capacity: 1, cycle: 1h, mode: shadow", 200, 200, "shadow is on", "has ended"},
		{"capacity: 1, cycle: 1h, mode: off", 200, 404, "fair share has ended", "has no fair_share section"},
	} {
		next = sharing(t, o, step.fairShare)
		if err := i.Reload(); err != nil {
			t.Fatalf("%q: %v", step.fairShare, err)
		}
		text := log.Take()
		if !strings.Contains(text, step.says) || strings.Contains(text, step.never) {
			t.Errorf("%q logs, with %q and without %q:\n%s", step.fairShare, step.says, step.never, text)
		}
		if got := as(t, at.Proxy, "A"); got != step.status {
			t.Errorf("%q: a request is answered with %d, want %d", step.fairShare, got, step.status)
		}
		status, text := get(t, at.Admin+"/api/v1/shares")
		if status != step.page || status == http.StatusNotFound && strings.TrimSpace(text) != admin.NoFairShare {
			t.Errorf("%q: the shares are answered with %d: %s", step.fairShare, status, text)
		}
		var s admin.Status
		_, text = get(t, at.Admin+"/api/v1/status")
		if json.Unmarshal([]byte(text), &s) != nil || (s.FairShare != nil) != (step.page == http.StatusOK) {
			t.Errorf("%q: the status is %s", step.fairShare, text)
		}
	}
}
