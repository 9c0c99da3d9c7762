package open

import (
	"errors"
	"testing"

	"github.com/headgate/headgate/config"
)

// TestUnfollowedSource: a program has no rules of a source. It gets an error, at the start and at a reload, unless the file allows
// requests without them.
func TestUnfollowedSource(t *testing.T) {
	parse := func(source string) *config.Config {
		c, err := config.Parse("test.yaml", []byte("version: 1\n"+source+"rules: [{name: a, key: [ip], limits: [5/1h]}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := Guard(parse("source: {http: {url: 'http://127.0.0.1:1'}}\n")); !errors.Is(err, errUnfollowed) {
		t.Errorf("got %v", err)
	}
	if _, err := Guard(parse("source: {http: {url: 'http://127.0.0.1:1'}, without_state: allow}\n")); err != nil {
		t.Errorf("with allow: got %v", err)
	}
	g, err := Guard(parse(""))
	if err != nil {
		t.Fatal(err)
	}
	if err := reload(parse("source: {http: {url: 'http://127.0.0.1:1'}}\n"), g); !errors.Is(err, errUnfollowed) {
		t.Errorf("a reload: got %v", err)
	}
}
