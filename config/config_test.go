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

// parsed gives the configuration of a text that must be fine.
func parsed(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("headgate.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s\nis refused:\n%v", text, err)
	}
	return c
}

// part gives a part of a key.
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
		OnFull: headgate.Deny, ShutdownTimeout: 10 * time.Second, Rules: []guard.Rule{},
		Log: Log{Level: slog.LevelInfo, Decisions: LogSampled},
		Proxy: Proxy{
			Listen: ":8080", ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
			UpstreamTimeout: 30 * time.Second, HeaderStyle: HeaderDraft,
		},
		Admin: Admin{Listen: "127.0.0.1:9902", Health: "127.0.0.1:9903"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestSections sets every field of the sections to what is not its default.
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
admin: {listen: "0.0.0.0:1", health: off}
`)
	want := &Config{
		Store: "memory", StoreTimeout: 5 * time.Millisecond, Fallback: guard.FallbackAllow, MaxMemory: 1 << 20,
		OnFull: headgate.Allow, ShutdownTimeout: time.Minute, Independent: true, Rules: []guard.Rule{},
		Log: Log{Level: slog.LevelDebug, Decisions: LogAll},
		Proxy: Proxy{
			Listen: "127.0.0.1:8888", Upstream: &url.URL{Scheme: "https", Host: "api.example.com:8443"},
			ReadHeaderTimeout: time.Second, IdleTimeout: 2 * time.Second, UpstreamTimeout: 3 * time.Second, HeaderStyle: HeaderDraft03,
		},
		Admin: Admin{Listen: "0.0.0.0:1"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestRules reads one rule each, given as the fields besides its name.
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
				Rule: rule.Rule{Key: ip}, Status: 429,
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
				Cost:     3, Status: 503, Mode: guard.Shadow, Fallback: guard.FallbackAllow,
			},
		},
		"sub-windows by default": {
			"key: [ip], limits: [5/s], algorithm: sliding_window",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Status: 429,
				Policies: []headgate.Policy{{Algorithm: headgate.SlidingWindow, Limit: second(5), SubWindows: 4}},
			},
		},
		"several windows count what they refuse": {
			"key: [ip], limits: [5/s, 50/m], algorithm: sliding_window, sub_windows: 6, count_rejected: true",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Status: 429,
				Policies: []headgate.Policy{
					{Algorithm: headgate.SlidingWindow, Limit: second(5), SubWindows: 6, CountRejected: true},
					{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 50, Per: time.Minute}, SubWindows: 6, CountRejected: true},
				},
			},
		},
		"off": {
			"key: [ip], limits: [5/s], algorithm: fixed_window, count_rejected: false, mode: off",
			guard.Rule{
				Rule: rule.Rule{Key: ip}, Status: 429, Mode: guard.Off,
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
	c := parsed(t, "rules: [{name: a, key: [ip], limits: [5/s]}, {name: b, key: [ip], limits: [5/s], fallback: deny}]\nfallback: allow\nversion: 1\n")
	if c.Rules[0].Fallback != guard.FallbackAllow || c.Rules[1].Fallback != guard.FallbackDeny {
		t.Errorf("got %v and %v, want allow and deny", c.Rules[0].Fallback, c.Rules[1].Fallback)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--config") {
		t.Errorf("a file that is not there gives %v", err)
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
		t.Error("a folder is read as a file")
	}
	t.Setenv("HEADGATE_STORE_TIMEOUT", "7")
	var faults Faults
	if _, err := Load(path); !errors.As(err, &faults) || faults[0].File != "HEADGATE_STORE_TIMEOUT" {
		t.Errorf("a faulty variable gives %v", err)
	}
}

// TestEndlessFile: a file that never ends is read as far as a file may go.
func TestEndlessFile(t *testing.T) {
	_, err := Load("/dev/zero")
	if err == nil || !strings.Contains(err.Error(), "greater than 8MiB") {
		t.Errorf("got %v", err)
	}
}
