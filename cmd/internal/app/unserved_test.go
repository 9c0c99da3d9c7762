package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
)

const (
	proxyPart   = "proxy: {listen: '127.0.0.1:0', upstream: 'http://127.0.0.1:9'}\n"
	serverPart  = "server: {grpc: off, http: '127.0.0.1:0'}\n"
	domainsPart = "domains: {shop: {descriptors: [{key: k, limits: 1/s}]}}\n"
)

// parts is a configuration of these parts.
func parts(t *testing.T, all ...string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte("version: 1\nmax_memory: 1MiB\nrules: []\nadmin: {listen: off, health: off}\n"+strings.Join(all, "")))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestUnservedSections: an instance warns at the start and at a reload, once for each section that it
// does not serve.
func TestUnservedSections(t *testing.T) {
	for name, row := range map[string]struct {
		server         bool
		start, reload  []string
		atStart, later string
	}{
		"a proxy":                 {false, []string{proxyPart}, []string{proxyPart}, "", ""},
		"a proxy with a server":   {false, []string{proxyPart, serverPart, domainsPart}, []string{proxyPart, serverPart, domainsPart}, "server domains", ""},
		"a proxy with domains":    {false, []string{proxyPart, domainsPart}, []string{proxyPart, domainsPart, serverPart}, "domains", "server"},
		"domains at a reload":     {false, []string{proxyPart}, []string{proxyPart, domainsPart}, "", "domains"},
		"a server":                {true, []string{serverPart, domainsPart}, []string{serverPart, domainsPart}, "", ""},
		"a server with a proxy":   {true, []string{serverPart, proxyPart}, []string{serverPart, proxyPart}, "proxy", ""},
		"a proxy beside a server": {true, []string{serverPart}, []string{serverPart, proxyPart}, "", "proxy"},
	} {
		var out bytes.Buffer
		o := Options{Config: parts(t, row.start...), Server: row.server, Log: slog.New(slog.NewTextHandler(&out, nil))}
		next := parts(t, row.reload...)
		o.Load = func() (*config.Config, error) { return next, nil }
		i, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		atStart := out.String()
		out.Reset()
		err = i.Reload()
		later := out.String()
		if stopped := i.Stop(); err != nil || stopped != nil {
			t.Errorf("%s: %v, %v", name, err, stopped)
		}
		if got := warned(atStart); got != row.atStart {
			t.Errorf("%s: at the start the log names %q, want %q", name, got, row.atStart)
		}
		if got := warned(later); got != row.later {
			t.Errorf("%s: at the reload the log names %q, want %q", name, got, row.later)
		}
	}
}

// warned lists the sections that a log warns of.
func warned(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		if _, section, found := strings.Cut(strings.TrimSpace(line), "serves it\" section="); found && strings.Contains(line, "level=WARN") {
			all = append(all, section)
		}
	}
	return strings.Join(all, " ")
}
