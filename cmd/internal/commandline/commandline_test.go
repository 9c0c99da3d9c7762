package commandline

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

type program struct {
	Serve serve `cmd:"" help:"Serve."`
	List  struct {
		All struct{} `cmd:"" default:"1"`
	} `cmd:""`
}

type serve struct {
	Names   []string      `sep:"," env:"COMMANDLINE_TEST_NAMES"`
	Headers []string      `sep:"none" short:"H"`
	Every   time.Duration `default:"1s"`
	Limit   *int64
	Dry     bool
	Form    string   `enum:"a,b" default:"a"`
	Files   []string `arg:"" optional:""`
}

func (s *serve) Validate() error {
	if s.Every < 0 {
		return errors.New("negative")
	}
	return nil
}

// parse reads a line whose words are separated by spaces.
func parse(t *testing.T, line string) (*program, *Parsed, error) {
	t.Helper()
	var p program
	c, err := New("test", "", &p)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := c.Parse(strings.Fields(line))
	return &p, parsed, err
}

func TestValues(t *testing.T) {
	t.Setenv("COMMANDLINE_TEST_NAMES", "x,y")
	p, parsed, err := parse(t, `serve --names=a,b\,c,d\\, --names e -Hk:v,w --headers h --every 5m --limit=0x10 --dry --form b -- f1 -f2`)
	s := &p.Serve
	if err != nil || !slices.Equal(s.Names, []string{"a", "b,c", `d\\`, "e"}) || !slices.Equal(s.Headers, []string{"k:v,w", "h"}) ||
		s.Every != 5*time.Minute || s.Limit == nil || *s.Limit != 16 || !s.Dry || s.Form != "b" || !slices.Equal(s.Files, []string{"f1", "-f2"}) {
		t.Errorf("got %+v, error %v", s, err)
	}
	if parsed.Selected().Target() != any(s) {
		t.Errorf("the selected command is %v", parsed.Selected().Name)
	}
	p, _, err = parse(t, "serve")
	if err != nil || !slices.Equal(p.Serve.Names, []string{"x", "y"}) || p.Serve.Every != time.Second || p.Serve.Limit != nil {
		t.Errorf("defaults: got %+v, error %v", p.Serve, err)
	}
	_, parsed, err = parse(t, "list")
	if err != nil || parsed.Selected().Name != "all" {
		t.Errorf("the default command is %q, error %v", parsed.Selected().Name, err)
	}
}

func TestFaults(t *testing.T) {
	for line, want := range map[string]string{
		"serve --every=-1s":     "serve: negative",
		"serve --form c":        `--form must be one of "a","b" but got "c"`,
		"serve --limit --dry":   `perhaps try --limit="--dry"?`,
		"serve --names":         `missing value, expecting "<arg>,..."`,
		"serve --drz":           `unknown flag --drz, did you mean "--dry"?`,
		"sreve":                 `unexpected argument sreve, did you mean "serve"?`,
		"":                      `expected one of "serve", "list"`,
		"serve --dry=2":         "bool value must be",
		"serve --every=one":     `expected duration but got "one"`,
		"serve --limit=1e3":     "expected a valid 64 bit int",
		"serve a --help":        ErrHelp.Error(),
		"list -h --unknown":     "unknown flag --unknown",
		"serve --dry --dry=no=": "bool value must be",
	} {
		if _, _, err := parse(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
	var unreadable struct{ F float64 }
	if _, err := New("test", "", &unreadable); err == nil {
		t.Error("a grammar with a field that no value is read into is accepted")
	}
}
