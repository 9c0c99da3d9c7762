package config

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// parsed returns the configuration of a text that must be valid.
func parsed(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("headgate.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s\nis refused:\n%v", text, err)
	}
	return c
}

// part parses a part of a key.
func part(t *testing.T, text string) rule.Part {
	t.Helper()
	p, err := rule.ParsePart(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDefaults(t *testing.T) {
	got := parsed(t, "version: 1\nrules: []\n")
	want := &Config{
		Store: "memory", StoreTimeout: 20 * time.Millisecond, Fallback: guard.FallbackDeny, MaxMemory: 256 << 20,
		OnFull: headgate.Deny, ShutdownTimeout: 10 * time.Second, RetryAfterMax: 24 * time.Hour, Rules: []guard.Rule{},
		Identity:       Identity{JWT: JWT{Leeway: 30 * time.Second}},
		Log:            Log{Level: slog.LevelInfo, Format: LogAuto, Decisions: LogSampled, Keys: KeysByReader, Access: AccessOff},
		DecisionHeader: true,
		Proxy: Proxy{
			Listen: ":8080", ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, BodyIdleTimeout: time.Minute,
			UpstreamTimeout: 30 * time.Second, MaxHeader: 64 << 10, MaxConnections: 16384, MaxRequests: 16384, MaxTrafficMemory: 1300 << 20, RequestID: "X-Request-Id", HeaderStyle: HeaderDraft,
			DataPlane: DataPlaneFast,
		},
		Admin: Admin{Listen: "127.0.0.1:9902", Health: "127.0.0.1:9903", HistorySeries: 2000},
	}
	want.fixed, want.written, want.own = got.fixed, got.written, got.own // TestNeedsRestart and the tests of Objects test these fields.
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestSections sets every field of the sections to a value other than its default.
func TestSections(t *testing.T) {
	got := parsed(t, `
version: 1
store: memory
store_timeout: 5ms
fallback: allow
max_memory: 1MiB
on_full: allow
shutdown_timeout: 1m
evaluate: independent
log: {level: debug, decisions: all}
rules: []
proxy:
  listen: 127.0.0.1:8888
  upstream: https://api.example.com:8443/
  read_header_timeout: 1s
  idle_timeout: 2s
  upstream_timeout: 3s
  header_style: draft03
  data_plane: standard
admin: {listen: "0.0.0.0:1", health: off}
`)
	want := &Config{
		Store: "memory", StoreTimeout: 5 * time.Millisecond, Fallback: guard.FallbackAllow, MaxMemory: 1 << 20,
		OnFull: headgate.Allow, ShutdownTimeout: time.Minute, RetryAfterMax: 24 * time.Hour, Independent: true, Rules: []guard.Rule{},
		Identity:       Identity{JWT: JWT{Leeway: 30 * time.Second}},
		Log:            Log{Level: slog.LevelDebug, Format: LogAuto, Decisions: LogAll, Keys: KeysByReader, Access: AccessOff},
		DecisionHeader: true,
		Proxy: Proxy{
			Listen: "127.0.0.1:8888", Upstream: &url.URL{Scheme: "https", Host: "api.example.com:8443"},
			ReadHeaderTimeout: time.Second, IdleTimeout: 2 * time.Second, BodyIdleTimeout: time.Minute, UpstreamTimeout: 3 * time.Second,
			MaxHeader: 64 << 10, MaxConnections: 16384, MaxRequests: 16384, MaxTrafficMemory: 1300 << 20, RequestID: "X-Request-Id", HeaderStyle: HeaderDraft03,
			DataPlane: DataPlaneStandard, DataPlaneSetting: "proxy.data_plane",
		},
		Admin: Admin{Listen: "0.0.0.0:1", HistorySeries: 2000},
	}
	want.fixed, want.written, want.own = got.fixed, got.written, got.own // TestNeedsRestart and the tests of Objects test these fields.
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestRules reads one rule in each row, given as its fields other than the name.
func TestRules(t *testing.T) {
	second := func(n int64) headgate.Limit { return headgate.Limit{Count: n, Per: time.Second} }
	ip := []rule.Part{part(t, "ip")}
	for name, row := range map[string]struct {
		text string
		want guard.Rule
	}{
		"defaults": {
			"key: [ip], limits: [5/s]",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Exceed: guard.Exceed{Status: 429},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(5)}},
			},
		},
		"everything of a bucket": {
			"match: {path: /a/*, methods: [GET], hosts: [a.b], headers: {x-y: '*', z: 1}}, key: [ip, 'header:x-y'], algorithm: leaky_bucket, " +
				"limits: [5/s], burst: 9, cost: 3, on_exceed: {action: reject, status: 503}, mode: shadow, fallback: allow",
			guard.Rule{
				Rule: rule.Rule{
					Match: rule.Match{
						Path: "/a/*", Methods: []string{"GET"}, Hosts: []string{"a.b"}, Headers: map[string]string{"x-y": "*", "z": "1"},
					},
					Key: []rule.Part{part(t, "ip"), part(t, "header:X-Y")},
				},
				Policies: []headgate.Policy{{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 5, Per: time.Second, Burst: 9}}},
				Cost:     3, Exceed: guard.Exceed{Status: 503}, Mode: guard.Shadow, Fallback: guard.FallbackAllow,
			},
		},
		"sub-windows by default": {
			"key: [ip], limits: [5/s], algorithm: sliding_window",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Exceed: guard.Exceed{Status: 429},
				Policies: []headgate.Policy{{Algorithm: headgate.SlidingWindow, Limit: second(5), SubWindows: 4}},
			},
		},
		"several windows count what they refuse": {
			"key: [ip], limits: [5/s, 50/m], algorithm: sliding_window, sub_windows: 6, count_rejected: true",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Exceed: guard.Exceed{Status: 429},
				Policies: []headgate.Policy{
					{Algorithm: headgate.SlidingWindow, Limit: second(5), SubWindows: 6, CountRejected: true},
					{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 50, Per: time.Minute}, SubWindows: 6, CountRejected: true},
				},
			},
		},
		"soft": {
			"key: [ip], limits: [5/s], soft: 80%",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Soft: 80, Exceed: guard.Exceed{Status: 429},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(5)}},
			},
		},
		"descriptors": {
			"match: {domain: shop, descriptors: {tenant: '*', Plan: 1}}, key: ['descriptor:tenant', mtls_subject], limits: [5/s]",
			guard.Rule{
				Rule: rule.Rule{
					Match: rule.Match{Domain: "shop", Descriptors: map[string]string{"tenant": "*", "Plan": "1"}},
					Key:   []rule.Part{part(t, "descriptor:tenant"), part(t, "mtls_subject")},
				},
				Exceed:   guard.Exceed{Status: 429},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(5)}},
			},
		},
		"a cost that is stated is bound by the limits": {
			"key: [ip], limits: [50/s, 500/m], cost: 'header:x-cost'",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, CostHeader: "X-Cost", MaxCost: 50, Exceed: guard.Exceed{Status: 429},
				Policies: []headgate.Policy{
					{Algorithm: headgate.TokenBucket, Limit: second(50)},
					{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 500, Per: time.Minute}},
				},
			},
		},
		"a cost that is stated is bound by max_cost": {
			"key: [ip], limits: [50/s], burst: 60, cost: 'header:X-Cost', max_cost: 55",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, CostHeader: "X-Cost", MaxCost: 55, Exceed: guard.Exceed{Status: 429},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 50, Per: time.Second, Burst: 60}}},
			},
		},
		"a cost that is stated is bound by what an override admits": {
			"key: [ip], limits: [50/s], cost: 'header:X-Cost', overrides: {192.0.2.1: {limits: [80/s, 900/m]}, 192.0.2.2: {limits: [0/s]}}",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, CostHeader: "X-Cost", MaxCost: 80, Exceed: guard.Exceed{Status: 429},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(50)}},
				Overrides: []guard.Override{
					{Value: "192.0.2.1", Many: true, Policies: []headgate.Policy{
						{Algorithm: headgate.TokenBucket, Limit: second(80)},
						{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 900, Per: time.Minute}},
					}},
					{Value: "192.0.2.2", Many: true, Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(0)}}},
				},
			},
		},
		"a cost that is stated where nothing passes": {
			"key: [ip], limits: [0/s], cost: 'header:X-Cost'",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, CostHeader: "X-Cost", Exceed: guard.Exceed{Status: 429},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(0)}},
			},
		},
		"delay": {
			"key: [all], limits: [5/s], on_exceed: {action: delay, max_wait: 2s}, overrides: {}",
			guard.Rule{
				Rule:     rule.Rule{Key: []rule.Part{part(t, "all")}},
				Exceed:   guard.Exceed{Action: guard.Delay, Status: 429, MaxWait: 2 * time.Second, MaxWaiters: guard.DefaultMaxWaiters},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(5), MaxWait: 2 * time.Second}},
			},
		},
		"delay with everything": {
			"key: [path], algorithm: leaky_bucket, limits: [5/s], mode: shadow, " +
				"on_exceed: {action: delay, max_wait: 1d, max_waiters: 1000000, status: 503}, overrides: {/a: {limits: [6/s], burst: 3}}",
			guard.Rule{
				Rule:     rule.Rule{Key: []rule.Part{part(t, "path")}},
				Exceed:   guard.Exceed{Action: guard.Delay, Status: 503, MaxWait: 24 * time.Hour, MaxWaiters: 1_000_000},
				Policies: []headgate.Policy{{Algorithm: headgate.LeakyBucket, Limit: second(5), MaxWait: 24 * time.Hour}},
				Overrides: []guard.Override{{Value: "/a", Many: true, Policies: []headgate.Policy{
					{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 6, Per: time.Second, Burst: 3}, MaxWait: 24 * time.Hour},
				}}},
				Mode: guard.Shadow,
			},
		},
		"redirect": {
			"key: [ip], limits: [5/s], on_exceed: {action: redirect, location: '/busy{path}?again={path}#top'}",
			guard.Rule{
				Rule:     rule.Rule{Key: ip},
				Exceed:   guard.Exceed{Action: guard.Redirect, Status: 302, Location: "/busy{path}?again={path}#top"},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(5)}},
			},
		},
		"redirect to another host": {
			"key: [ip], limits: [5/s], on_exceed: {action: redirect, location: 'http://[2001:db8::1]:8080{path}', status: 308}",
			guard.Rule{
				Rule:     rule.Rule{Key: ip},
				Exceed:   guard.Exceed{Action: guard.Redirect, Status: 308, Location: "http://[2001:db8::1]:8080{path}"},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(5)}},
			},
		},
		"degrade": {
			"key: [ip], limits: [5/s], algorithm: fixed_window, count_rejected: true, " +
				"on_exceed: {action: degrade, header: x-DEGRADED, value: 'a little: less', hard: 6/s, status: 400}",
			guard.Rule{
				Rule: rule.Rule{Key: ip},
				Exceed: guard.Exceed{
					Action: guard.Degrade, Status: 400, Header: "X-Degraded", Value: "a little: less",
					Hard: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: second(6), CountRejected: true},
				},
				Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: second(5), CountRejected: true}},
			},
		},
		"ban": {
			"key: [ip], limits: [5/s], ban: {for: 367d}",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Exceed: guard.Exceed{Status: 429}, Ban: guard.Ban{For: 367 * 24 * time.Hour},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: second(5)}},
			},
		},
		"ban after more than a burst": {
			"key: [ip], limits: [100/m], cost: 10, mode: shadow, ban: {after: 11/h, for: 1s}",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Cost: 10, Exceed: guard.Exceed{Status: 429}, Mode: guard.Shadow,
				Ban:      guard.Ban{After: headgate.Limit{Count: 11, Per: time.Hour}, For: time.Second},
				Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 100, Per: time.Minute}}},
			},
		},
		"off": {
			"key: [ip], limits: [5/s], algorithm: fixed_window, count_rejected: false, mode: off",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Exceed: guard.Exceed{Status: 429}, Mode: guard.Off,
				Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: second(5)}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			row.want.Name = "r"
			got := parsed(t, "version: 1\nrules:\n  - {name: r, "+row.text+"}\n").Rules[0]
			if !reflect.DeepEqual(got, row.want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, row.want)
			}
		})
	}
}

func TestRuleTakesTheFallbackOfTheFile(t *testing.T) {
	c := parsed(t, "rules: [{name: a, key: [ip], limits: [5/s]}, {name: b, key: [path], limits: [5/s], fallback: deny}]\nfallback: allow\nversion: 1\n")
	if c.Rules[0].Fallback != guard.FallbackAllow || c.Rules[1].Fallback != guard.FallbackDeny {
		t.Errorf("got %v and %v, want allow and deny", c.Rules[0].Fallback, c.Rules[1].Fallback)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "or name another") || strings.Contains(err.Error(), "--") {
		t.Errorf("Load of a missing file: got error %v, want advice to write or name a file", err)
	}
	if err := os.WriteFile(path, []byte("version: 1\nrules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HEADGATE_STORE_TIMEOUT", "7ms")
	c, err := Load(path)
	if err != nil || c.StoreTimeout != 7*time.Millisecond {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("Load of a folder succeeds, want an error")
	}
	t.Setenv("HEADGATE_STORE_TIMEOUT", "7")
	var faults Faults
	if _, err := Load(path); !errors.As(err, &faults) || faults[0].File != "HEADGATE_STORE_TIMEOUT" {
		t.Errorf("Load with an invalid variable: got error %v, want Faults", err)
	}
}

// TestEndlessFile checks that a device without an end, such as /dev/zero, is not read.
func TestEndlessFile(t *testing.T) {
	_, err := Load("/dev/zero")
	if err == nil || !strings.Contains(err.Error(), "not a regular file but a device") {
		t.Errorf("got %v", err)
	}
}
