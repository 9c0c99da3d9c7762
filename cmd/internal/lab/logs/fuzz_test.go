package logs_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

// FuzzLines reads any bytes in each format. No line escapes its bounds: times are from 1970 to 2200, durations and costs are -1 or more, and
// no text is longer than the log. Each line of the log is read once.
func FuzzLines(f *testing.F) {
	for _, c := range lineCases {
		f.Add([]byte(c.line))
	}
	for _, hostile := range []string{
		"", "\n", "{", `{"ts":`, `{"ts":1e400}`, `{"ts":-1,"m":"GET"}`, strings.Repeat("[", 1000), `{"time":"2026-03-01T12:00:00Z","uri":"\ud800\u"}`,
		`1.2.3.4 - - [01/Mar/2026:12:00:00 +9999] "\x" 200 1`, "\x1f\x8b\x08\x00", `</script><script>alert(1)</script>`,
		"\x00\x1b[2J\xff\u202e", "00[01/May/2000:00:00:00,000]0", `{"ts":99999999999999999999,"duration":1e308}`,
	} {
		f.Add([]byte(hostile))
	}
	fields := []logs.Field{
		{Name: "time", Path: "ts"}, {Name: "method", Path: "m"}, {Name: "path", Path: "a.b"}, {Name: "duration_ms", Path: "d"}, {Name: client, Path: "h.c"},
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, k := range logs.Kinds() {
			o := logs.Options{Name: "a", Format: k.Name, Parts: []string{client, "cookie:session", "header:User-Agent"}}
			if k.Name == "json" {
				o.Fields = fields
			}
			r, err := logs.New(bytes.NewReader(text), o)
			if err != nil {
				continue
			}
			readAny(t, r, len(text))
		}
	})
}

// readAny reads a log and checks the bounds of its lines.
func readAny(t *testing.T, r *logs.Reader, size int) {
	t.Helper()
	var l logs.Line
	former := int64(0)
	for {
		err := r.Next(&l)
		var cut *logs.CutError
		if errors.Is(err, io.EOF) || errors.As(err, &cut) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.Number <= former {
			t.Fatalf("line %d follows %d", l.Number, former)
		}
		former = l.Number
		if l.Skip != logs.Request {
			continue
		}
		if at := l.Arrival.Time(); at.Year() < 1970 || at.Year() > 2200 || l.Duration < -1 || l.Duration > 366*24*time.Hour || l.Cost < -1 || l.Status < 0 {
			t.Fatalf("%s: the arrival is %v, the duration %v, the cost %d, the status %d", l.Raw, at, l.Duration, l.Cost, l.Status)
		}
		for _, text := range [][]byte{l.Method, l.Host, l.Path, l.Query, l.Client, l.Parts[0].Text} {
			if len(text) > 3*size+1 { // U+FFFD is longer than the byte that it replaces.
				t.Fatalf("%s: a text has %d bytes", l.Raw, len(text))
			}
		}
	}
}
