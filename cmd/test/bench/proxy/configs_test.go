package proxy

import (
	"os"
	"strings"
	"testing"
)

// rendered returns the configuration file of a side.
func rendered(t *testing.T, s side) string {
	t.Helper()
	programs := &Programs{t.TempDir()}
	v, err := programs.newValues(s.settings, "127.0.0.1:9000")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.render(s.server.template); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	text, err := os.ReadFile(v.Config)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), v.Listen) || !strings.Contains(string(text), v.Upstream) {
		t.Errorf("%s: the configuration lacks the address %s or %s:\n%s", s.name, v.Listen, v.Upstream, text)
	}
	return string(text)
}

// TestConfigurations renders the configuration of each side of each scene.
func TestConfigurations(t *testing.T) {
	sides := throttleSides()
	for _, scene := range Scenes("HEAD") {
		sides = append(sides, scene.sides...)
	}
	for _, s := range sides {
		if s.server.template == "" {
			continue
		}
		text := rendered(t, s)
		if s.server.program != "headgate" {
			continue
		}
		if got, want := strings.Count(text, "- name:"), s.settings.Rules+s.settings.OtherRules; got != want {
			t.Errorf("%s: got %d rules, want %d:\n%s", s.name, got, want, text)
		}
		if plane := s.settings.Plane; strings.Contains(text, "  data_plane: "+plane+"\n") != (plane != "") {
			t.Errorf("%s: want data_plane %q:\n%s", s.name, plane, text)
		}
	}
}

// TestRefusals checks that the refusing configurations have another limit.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		server       server
		high, refuse string
	}{
		{headgate(), "100000000/10s", "1/1h"},
		{nginx(), "burst=", "rate=1r/m"},
		{haproxy(), "gt 100000000", "gt 1 }"},
	} {
		high := rendered(t, side{server: test.server, settings: settings{Rules: 1}})
		refuse := rendered(t, side{server: test.server, settings: settings{Rules: 1, Refuse: true}})
		if !strings.Contains(high, test.high) || strings.Contains(high, test.refuse) {
			t.Errorf("%s: the high limit lacks %q:\n%s", test.server.program, test.high, high)
		}
		if !strings.Contains(refuse, test.refuse) || strings.Contains(refuse, test.high) {
			t.Errorf("%s: the low limit lacks %q:\n%s", test.server.program, test.refuse, refuse)
		}
	}
}
