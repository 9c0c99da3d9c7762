package logs_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

// lineCase is a log of one line, and what the reader makes of it.
type lineCase struct {
	name, format string // "" detects the format
	line         string
	want         string
	fields       []logs.Field
}

const client = "header:X-Client-Id"

// TestLines reads one line of each form. want has the kind, the arrival, the duration, the status, the client, the request, the host and the
// part header:X-Client-Id.
func TestLines(t *testing.T) {
	for _, c := range lineCases {
		t.Run(c.name, func(t *testing.T) {
			r, err := logs.New(strings.NewReader(c.line+"\n"), logs.Options{
				Name: "access.log", Format: c.format, Fields: c.fields, Parts: []string{client, "cookie:session"},
			})
			if err != nil {
				t.Fatal(err)
			}
			var l logs.Line
			if err := r.Next(&l); err != nil {
				t.Fatal(err)
			}
			if got := describe(r, &l); got != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", c.line, got, c.want)
			}
			if err := r.Next(&l); !errors.Is(err, io.EOF) {
				t.Errorf("the error after the last line is %v", err)
			}
		})
	}
}

// describe writes what a test compares.
func describe(r *logs.Reader, l *logs.Line) string {
	if l.Skip != logs.Request {
		return r.Kind().Name + " skip: " + l.Skip.String()
	}
	text := fmt.Sprintf("%s %s %s %d %s %s %s", r.Kind().Name, l.Arrival.Time().Format("15:04:05.999999"), l.Duration, l.Status, l.Client,
		l.Method, l.Path)
	if len(l.Query) > 0 {
		text += "?" + string(l.Query)
	}
	if len(l.Host) > 0 {
		text += " host " + string(l.Host)
	}
	for i, name := range []string{"client", "session"} {
		if v := l.Parts[i]; v.Form > logs.Absent {
			text += fmt.Sprintf(" %s %s", name, v.Text)
		}
	}
	return text
}
