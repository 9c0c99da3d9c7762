package resp

import (
	"fmt"
	"testing"
)

// TestQuoted: arguments with quotes replace their bytes, and nothing else.
func TestQuoted(t *testing.T) {
	for line, want := range map[string]string{
		`ECHO "a b" 'c d'`:                   `["ECHO" "a b" "c d"]`,
		`a"b\x41\n" 'c\'d' e`:                `["abA\n" "c'd" "e"]`,
		`"" '' x`:                            `["" "" "x"]`,
		`"\"\\\t\q\xzz" key="value" "last"`:  `["\"\\\tqxzz" "key=value" "last"]`,
		`'\x41\n' mixed'\'' "\x00\xff" tail`: `["\\x41\\n" "mixed'" "\x00\xff" "tail"]`,
	} {
		const next = "PING \"next\"\r\n"
		var r reader
		b := []byte(line + "\r\n" + next)
		n, err := r.parse(b)
		if got := fmt.Sprintf("%q", r.args); got != want || n != len(line)+2 || err != nil || string(b[n:]) != next {
			t.Errorf("%s: got %s, %d, %v, and %q follows, want %s", line, got, n, err, b[n:], want)
		}
	}
}
