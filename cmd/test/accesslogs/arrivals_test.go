package accesslogs

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

// line is what a test compares of a line.
type line struct {
	at       time.Time
	duration time.Duration
	unit     time.Duration
	client   string
	query    string
	status   int
}

// read returns the lines of a log by their paths, and the format.
func read(t *testing.T, path string, o logs.Options) (lines map[string]line, kind *logs.Kind, malformed int) {
	t.Helper()
	o.Parts = []string{client}
	r, err := logs.Open(path, o)
	if err != nil {
		return nil, nil, 0 // The first line is not there, or not whole.
	}
	defer r.Close()
	lines = map[string]line{}
	var l logs.Line
	for {
		switch err := r.Next(&l); {
		case errors.Is(err, io.EOF):
			return lines, r.Kind(), malformed
		case err != nil:
			t.Fatal(err)
		}
		if l.Skip == logs.Malformed {
			malformed++
		}
		if l.Skip == logs.Request {
			lines[strings.TrimPrefix(string(l.Path), "/")] = line{
				l.Arrival.Time(), l.Duration, l.Resolution, string(l.Parts[0].Text), string(l.Query), l.Status,
			}
		}
	}
}

// TestArrivals: the arrivals in the logs of real servers are the moments that the presets name.
func TestArrivals(t *testing.T) {
	t.Parallel()
	for _, s := range servers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			folder, at, http2 := s.start(t)
			sent := scenarios(t, at)
			if s.http2 {
				sent = append(sent, streams(t, http2)...)
			}
			path := filepath.Join(folder, s.log)
			if s.log == "" {
				path = filepath.Join(folder, "out")
			}
			name := ""
			if s.name == "lighttpd" { // Its lines are like those of Apache.
				name = s.name
			}
			var lines map[string]line
			var kind *logs.Kind
			await(t, "the lines of "+s.name, func() bool {
				lines, kind, _ = read(t, path, logs.Options{Format: name})
				return kind != nil && has(lines, sent)
			})
			if kind.Name != s.name {
				t.Fatalf("the format is %s, not %s", kind.Name, s.name)
			}
			var latest time.Duration
			for _, r := range sent {
				latest = max(latest, judge(t, kind, r, lines[r.name]))
			}
			t.Logf("the latest arrival is %v after the client", latest)
			if s.combined != "" {
				s.judgeCombined(t, filepath.Join(folder, s.combined), kind, sent)
			}
		})
	}
}

func has(lines map[string]line, sent []*request) bool {
	for _, r := range sent {
		if _, found := lines[r.name]; !found {
			return false
		}
	}
	return true
}

// judge compares a line with what the client knows. It returns how late the arrival is.
func judge(t *testing.T, kind *logs.Kind, r *request, l line) time.Duration {
	t.Helper()
	moment := r.moment(kind.Moment)
	if l.at.Before(moment.from.Add(-early)) || l.at.After(moment.to.Add(slack)) {
		t.Errorf("%s: the arrival is %v after %v, at most %v may pass", r.name, l.at.Sub(moment.from), kind.Moment, moment.to.Sub(moment.from)+slack)
	}
	if l.client != clientID {
		t.Errorf("%s: the client is %q", r.name, l.client)
	}
	if !r.aborted {
		if l.duration < 0 || l.duration > r.end.Sub(moment.from)+early || l.status != 200 {
			t.Errorf("%s: the duration is %v, the status %d; the client measured %v", r.name, l.duration, l.status, r.end.Sub(moment.from))
		}
		if r.name == "service" && l.duration < delay-early {
			t.Errorf("the service takes %v, and the log says %v", delay, l.duration)
		}
	}
	if !strings.HasPrefix(r.name, "stream") && l.query != "x=1" {
		t.Errorf("%s: the query is %q", r.name, l.query)
	}
	return l.at.Sub(moment.to)
}

// judgeCombined compares the combined format with the moment of the server: the end of nginx and the arrival of Apache, to the second.
func (s *server) judgeCombined(t *testing.T, path string, kind *logs.Kind, sent []*request) {
	t.Helper()
	var lines map[string]line
	var found *logs.Kind
	await(t, "combined lines of "+s.name, func() bool {
		lines, found, _ = read(t, path, logs.Options{})
		return found != nil && has(lines, sent)
	})
	if found.Name != "combined" {
		t.Errorf("the format is %s", found.Name)
	}
	for _, r := range sent {
		from, to := r.moment(kind.Moment).from, r.moment(kind.Moment).to
		if s.name == "nginx" {
			if to = r.end; r.aborted {
				continue
			}
		}
		l := lines[r.name]
		if l.unit != time.Second || l.at.Before(from.Add(-early).Truncate(time.Second)) || l.at.After(to.Add(slack)) {
			t.Errorf("%s: the time is %v, and the client saw it between %v and %v", r.name, l.at, from, to)
		}
	}
}
