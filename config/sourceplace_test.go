package config

import (
	"strings"
	"testing"
)

// TestPlace: the address of a source has no secret and does not depend on the order of servers, and tells sources apart.
func TestPlace(t *testing.T) {
	of := func(url string) string { return (&Source{HTTP: &HTTPSource{URL: url}}).Place() }
	first, second := of("https://a/x?token=secret"), of("https://a/x?token=other")
	if !strings.HasPrefix(first, "https://a/x?") || strings.Contains(first, "secret") || strings.Contains(first, "token") || first == second {
		t.Errorf("got %q and %q", first, second)
	}
	if got := of("https://a/x"); got != "https://a/x" {
		t.Errorf("got %q", got)
	}
	for _, order := range [][]string{{"b:1", "a:1"}, {"a:1", "b:1"}} {
		etcd, postgres := &Source{Etcd: &EtcdSource{Endpoints: order}}, &Source{Postgres: &PostgresSource{Hosts: order}}
		if !strings.HasPrefix(etcd.Place(), "a:1,b:1") || !strings.HasPrefix(postgres.Place(), "a:1,b:1") {
			t.Errorf("got %q and %q", etcd.Place(), postgres.Place())
		}
	}
}
