package usage

import (
	"strings"
	"testing"
)

// TestSteps counts the steps of a document: at most two a byte, whatever the bytes are.
func TestSteps(t *testing.T) {
	p, err := Compile([]Field{{Paths: []string{"a.[].a", "a"}}, {Kind: Text, Paths: []string{"b"}}, {Kind: Length, Paths: []string{"a.[]"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{
		`"`, `\`, `\"`, `[`, `]`, `{`, `}`, `{"a":`, `{"a":[`, `"a":1,`, `,`, `:`, `1`, `1,`, ` `, "\n", `""`, `[1`, `[]`, `{}`, `{"b":"`, `{"a":["`, "\x00", `{1`, `[,`,
	} {
		b := []byte(strings.Repeat(unit, 5000))
		d := document{program: p}
		steps := 0
		for i := 0; i < len(b); steps++ {
			i += d.step(b[i:])
		}
		if steps > 2*len(b) {
			t.Errorf("%q: %d steps for %d bytes", unit, steps, len(b))
		}
	}
}
