package accesslogs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
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
func read(t *testing.T, log string, o logs.Options) (lines map[string]line, kind *logs.Kind) {
	t.Helper()
	o.Parts = []string{client}
	r, err := logs.Open(log, o)
	if err != nil {
		return nil, nil // The first line is not there, or not whole.
	}
	defer r.Close()
	lines = map[string]line{}
	var l logs.Line
	for {
		switch err := r.Next(&l); {
		case errors.Is(err, io.EOF):
			return lines, r.Kind()
		case err != nil:
			t.Fatal(err)
		}
		if l.Skip == logs.Request {
			lines[strings.TrimPrefix(string(l.Path), "/")] = line{
				l.Arrival.Time(), l.Duration, l.Resolution, string(l.Parts[0].Text), string(l.Query), l.Status,
			}
		}
	}
}

// rounds bounds how often the requests are sent again. A late arrival may be that of a busy machine: it counts if it is late in each round.
const rounds = 3

// TestArrivals: the arrivals in the logs of real servers are the moments that the presets name.
func TestArrivals(t *testing.T) {
	t.Parallel()
	for _, s := range servers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			folder, at, http2 := s.start(t)
			late := map[string]time.Duration{} // of each scenario, in its best round
			for n := range rounds {
				round := fmt.Sprintf("%d/", n)
				sent := scenarios(t, at, round)
				if s.http2 {
					sent = append(sent, streams(t, http2, round)...)
				}
				s.judge(t, folder, sent, late)
				if most := slices.Max(slices.Collect(maps.Values(late))); most <= slack {
					t.Logf("the latest arrival is %v after the client, in %d rounds", most, n+1)
					return
				}
			}
			for name, d := range late {
				if d > slack {
					t.Errorf("%s: the log is %v later than the client, in the best of %d rounds; at most %v may pass", name, d, rounds, slack)
				}
			}
		})
	}
}

// judge compares the logs with what the client knows, and notes how late they are.
func (s *server) judge(t *testing.T, folder string, sent []*request, late map[string]time.Duration) {
	t.Helper()
	o := logs.Options{}
	if s.name == "lighttpd" { // Its lines are like those of Apache.
		o.Format = s.name
	}
	log := s.log
	if log == "" {
		log = "out"
	}
	lines, kind := awaitLines(t, filepath.Join(folder, log), o, sent)
	if kind.Name != s.name {
		t.Fatalf("the format is %s, not %s", kind.Name, s.name)
	}
	note := func(name string, d time.Duration) {
		if former, found := late[name]; !found || d < former {
			late[name] = d
		}
	}
	for _, r := range sent {
		note(path.Base(r.name), judge(t, kind, r, lines[r.name]))
	}
	if s.combined == "" {
		return
	}
	// The time of nginx is the end and that of Apache the arrival, to the second.
	lines, combined := awaitLines(t, filepath.Join(folder, s.combined), logs.Options{}, sent)
	if combined.Name != "combined" {
		t.Errorf("the format is %s", combined.Name)
	}
	for _, r := range sent {
		from, to, l := r.moment(kind.Moment).from, r.moment(kind.Moment).to, lines[r.name]
		if s.name == "nginx" {
			if to = r.end; r.aborted {
				continue
			}
		}
		if l.unit != time.Second || l.at.Before(from.Add(-early).Truncate(time.Second)) {
			t.Errorf("%s: the combined time is %v, and the client saw it between %v and %v", r.name, l.at, from, to)
		}
		note("combined "+path.Base(r.name), l.at.Sub(to))
	}
}

// awaitLines reads a log until it has the lines of all requests.
func awaitLines(t *testing.T, log string, o logs.Options, sent []*request) (lines map[string]line, kind *logs.Kind) {
	t.Helper()
	await(t, "the lines of "+log, func() bool {
		lines, kind = read(t, log, o)
		return kind != nil && has(lines, sent)
	})
	return lines, kind
}

func has(lines map[string]line, sent []*request) bool {
	for _, r := range sent {
		if _, found := lines[r.name]; !found {
			return false
		}
	}
	return true
}

// judge compares a line with what the client knows. It returns how late the arrival or the end is.
func judge(t *testing.T, kind *logs.Kind, r *request, l line) time.Duration {
	t.Helper()
	moment := r.moment(kind.Moment)
	if l.at.Before(moment.from.Add(-early)) {
		t.Errorf("%s: the arrival is %v before %v", r.name, moment.from.Sub(l.at), kind.Moment)
	}
	if l.client != clientID {
		t.Errorf("%s: the client is %q", r.name, l.client)
	}
	if !strings.Contains(r.name, "stream") && l.query != "x=1" {
		t.Errorf("%s: the query is %q", r.name, l.query)
	}
	late := l.at.Sub(moment.to)
	if r.aborted {
		return late
	}
	if l.duration < 0 || l.status != 200 || path.Base(r.name) == "service" && l.duration < delay-early {
		t.Errorf("%s: the duration is %v, the status %d", r.name, l.duration, l.status)
	}
	return max(late, l.duration-r.end.Sub(moment.from))
}
