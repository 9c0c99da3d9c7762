package resp

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// slowArray is the twin of parseArray: it splits complete lines with strings. ok is false for what it
// does not accept, and n is 0 for what has not ended.
func slowArray(text string) (args []string, n int, ok bool) {
	line, rest, found := strings.Cut(text, "\r\n")
	if !found {
		return nil, 0, true
	}
	count, ok := slowCount(line[1:])
	if !ok || count > maxArguments {
		return nil, 0, false
	}
	for range count {
		line, after, found := strings.Cut(rest, "\r\n")
		if rest != "" && rest[0] != '$' {
			return nil, 0, false
		}
		if !found {
			return nil, 0, true
		}
		size, ok := slowCount(line[1:])
		if !ok || size < 0 || size > bufferSize {
			return nil, 0, false
		}
		if len(after) < size+2 {
			return nil, 0, true
		}
		if after[size:size+2] != "\r\n" {
			return nil, 0, false
		}
		args, rest = append(args, after[:size]), after[size+2:]
	}
	return args, len(text) - len(rest), true
}

func slowCount(digits string) (int, bool) {
	n, err := strconv.Atoi(digits)
	return n, err == nil && digits[0] != '+' && len(strings.TrimPrefix(digits, "-")) <= maxDigits
}

func FuzzCommand(f *testing.F) {
	for _, seed := range []string{
		"*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "*-1\r\n", "*0\r\n", "*1\r\n$-1\r\n", "*1\r\n$4\r\nPINGxx", "PING\r\n", "ECHO \"a\\x41\" 'b'\n",
		"*1\r\n$4\n", "*1", "*99999999999\r\n", "*1\r\n$+4\r\nPING\r\n", " \r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r reader
		n, err := r.parse(bytes.Clone(b)) // Quoted arguments replace their bytes.
		if n < 0 || n > len(b) || n == 0 && len(r.args) > 0 || len(r.args) > maxArguments {
			t.Fatalf("parse(%q) gives %d, %q", b, n, r.args)
		}
		if n > 0 { // Each beginning of a command is incomplete.
			for cut := range n {
				var part reader
				if used, err := part.parse(b[:cut]); used != 0 || err != nil {
					t.Fatalf("parse(%q) gives %d, %v, and all of %q is a command", b[:cut], used, err, b[:n])
				}
				if cut > 200 {
					break
				}
			}
		}
		if len(b) == 0 || b[0] != '*' {
			return
		}
		args, want, ok := slowArray(string(b))
		// The fast parser finds a fault before the line has ended.
		if want > 0 != (n > 0) || n != want || !ok && err == nil && n > 0 {
			t.Fatalf("parse(%q) gives %d, %v, and the twin %d, %v", b, n, err, want, ok)
		}
		if !slices.EqualFunc(r.args, args, func(a []byte, s string) bool { return bytes.Equal(a, []byte(s)) }) && n > 0 {
			t.Fatalf("parse(%q) gives %q, and the twin %q", b, r.args, args)
		}
	})
}
