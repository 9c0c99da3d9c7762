package config

import (
	"strings"
	"testing"
)

// TestPlace: the address of a source has no secret and does not depend on the order of servers, and tells sources apart.
func TestPlace(t *testing.T) {
	value := func(url string) string { return (&Source{HTTP: &HTTPSource{URL: url}}).Place() }
	first, second := value("https://a/x?token=secret"), value("https://a/x?token=other")
	if !strings.HasPrefix(first, "https://a/x?") || strings.Contains(first, "secret") || strings.Contains(first, "token") || first == second {
		t.Errorf("got %q and %q", first, second)
	}
	if got := value("https://a/x"); got != "https://a/x" {
		t.Errorf("got %q", got)
	}
	for _, order := range [][]string{{"b:1", "a:1"}, {"a:1", "b:1"}} {
		etcd, postgres := &Source{Etcd: &EtcdSource{Endpoints: order}}, &Source{Postgres: &PostgresSource{Hosts: order}}
		if !strings.HasPrefix(etcd.Place(), "a:1,b:1") || !strings.HasPrefix(postgres.Place(), "a:1,b:1") {
			t.Errorf("got %q and %q", etcd.Place(), postgres.Place())
		}
	}
}

// TestWithoutStateInTheSummary: headgate check says what happens before the source has answered.
func TestWithoutStateInTheSummary(t *testing.T) {
	for setting, want := range map[string]string{
		"":                        "every request is refused with 503, source_unavailable or plan_missing",
		", without_state: refuse": "every request is refused with 503, source_unavailable or plan_missing",
		", without_state: allow":  "rules that only the source has limit nothing",
	} {
		c, err := Parse("test.yaml", []byte("version: 1\nrules: []\nsource: {http: {url: 'http://h'}"+setting+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := c.WriteSummary(&text); err != nil || !strings.Contains(text.String(), want) {
			t.Errorf("%q: the summary lacks %q:\n%s, %v", setting, want, text.String(), err)
		}
	}
	_, err := Parse("test.yaml", []byte("version: 1\nrules: []\nsource: {http: {url: 'http://h'}, without_state: pass}\n"))
	if err == nil || !strings.Contains(err.Error(), "use one of refuse, allow") {
		t.Errorf("an unknown word: got %v", err)
	}
}
