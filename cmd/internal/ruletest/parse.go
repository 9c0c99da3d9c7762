package ruletest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a file.
const (
	maxFileBytes = 16 << 20
	maxTimes     = 1_000_000
	maxRequests  = 1_000_000
	maxPause     = 100 * 366 * 24 * time.Hour
	mostFaults   = 100
)

// Test is a part of a file that starts with empty counters.
type Test struct {
	// Name is "" for the lines before the first test that has a name.
	Name  string
	steps []step
}

// Lines returns the number of lines of a test.
func (t *Test) Lines() int { return len(t.steps) }

// step is one line of a file: a pause, a time, or a request.
type step struct {
	line  int
	pause time.Duration // 0 without one
	at    time.Time     // zero without one

	times          int
	method, target string
	from           string // the address of the peer; "" means defaultAddress
	as             string // the subject of the client's certificate
	header         []field
	lasts          time.Duration // the time that the service takes
	status         int
	waits          time.Duration
	want           []field // of the answer
	wantMarks      []field // of the request to the service
}

// field is a header field. In an expectation, an empty value means that the field is absent.
type field struct{ name, value string }

// requestForm matches a request. Its groups are the fields of a step.
var requestForm = regexp.MustCompile(`^(?:(\d+) x )?([A-Z]+) (\S+)(?: +from (\S+))?(?: +as "([^"]+)")?(?: +lasts (\S+))?(?: +(\S.*?))?` +
	` +-> +(\d{3})(?: +waits (\S+))?(?: +(\S.*))?$`)

const requestExample = "3 x GET /path  X-Client-Id: a  -> 200"

// Parse reads the text of a file, which faults call by name. The error joins all faults.
func Parse(name string, text []byte) ([]Test, error) {
	if len(text) > maxFileBytes || !utf8.Valid(text) {
		return nil, fmt.Errorf("%s: is larger than 16 MiB, or no UTF-8: write requests like %s", name, requestExample)
	}
	p := parser{all: []Test{{}}}
	for n, row := range strings.Split(string(text), "\n") {
		if err := p.row(n+1, strings.TrimSpace(row)); err != nil {
			p.faults = append(p.faults, fmt.Errorf("%s:%d: %w", name, n+1, err))
		}
		if len(p.faults) > mostFaults {
			break
		}
	}
	if len(p.all[0].steps) == 0 {
		p.all = p.all[1:]
	}
	if len(p.all) == 0 && len(p.faults) == 0 {
		p.faults = append(p.faults, fmt.Errorf("%s: has no request: write one like %s", name, requestExample))
	}
	return p.all, errors.Join(p.faults...)
}

type parser struct {
	all      []Test
	requests int
	faults   []error
}

// row reads one line, without the space around it.
func (p *parser) row(line int, row string) (err error) {
	row, _, _ = strings.Cut(row, "  # ")
	if row = strings.TrimSpace(row); row == "" || row[0] == '#' {
		return nil
	}
	word, rest, _ := strings.Cut(row, " ")
	rest = strings.TrimSpace(rest)
	s := step{line: line}
	switch word {
	case "test":
		if rest == "" {
			return errors.New("the test has no name: say what it shows, like: test each client alone")
		}
		p.all = append(p.all, Test{Name: rest})
		return nil
	case "after":
		s.pause, err = duration(rest, maxPause)
	case "at":
		if s.at, err = time.Parse(time.RFC3339, rest); err != nil || s.at.Year() < 2000 || s.at.Year() > 2100 {
			return fmt.Errorf("%q is no time: write it like at 2026-11-30T09:00:00Z", rest)
		}
	default:
		if err = s.request(row); err == nil {
			if p.requests += s.times; p.requests > maxRequests {
				return fmt.Errorf("the file has more than %d requests: make fewer", maxRequests)
			}
		}
	}
	last := &p.all[len(p.all)-1]
	last.steps = append(last.steps, s)
	return err
}

// request reads a line with a request.
func (s *step) request(row string) (err error) {
	found := requestForm.FindStringSubmatch(row)
	if found == nil {
		return fmt.Errorf("%q is not a request: write it like %s", row, requestExample)
	}
	s.times, s.method, s.target, s.from, s.as = 1, found[2], found[3], found[4], found[5]
	if found[1] != "" {
		if s.times, err = strconv.Atoi(found[1]); err != nil || s.times < 1 || s.times > maxTimes {
			return fmt.Errorf("%s requests: write 1 to %d", found[1], maxTimes)
		}
	}
	if found[6] != "" {
		if s.lasts, err = duration(found[6], maxPause); err != nil {
			return err
		}
	}
	if s.header, err = fieldsOf(found[7]); err != nil {
		return err
	}
	s.status, _ = strconv.Atoi(found[8])
	if found[9] != "" {
		if s.waits, err = duration(found[9], maxPause); err != nil {
			return err
		}
	}
	want, err := fieldsOf(found[10])
	for _, f := range want {
		if mark, ok := strings.CutPrefix(f.name, "service "); ok {
			s.wantMarks = append(s.wantMarks, field{mark, f.value})
		} else {
			s.want = append(s.want, f)
		}
	}
	return err
}

func duration(text string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > most {
		return 0, fmt.Errorf("%q is no time: write it like 90s or 1h30m", text)
	}
	return d, nil
}

// fieldsOf splits "A: b | C: d".
func fieldsOf(text string) (fields []field, err error) {
	for part := range strings.SplitSeq(text, " | ") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, found := strings.Cut(part, ":")
		if !found || name == "" || strings.TrimSpace(name) != name {
			return nil, fmt.Errorf("%q is no header field: write it like X-Client-Id: a, with | between two", part)
		}
		fields = append(fields, field{name, strings.TrimSpace(value)})
	}
	return fields, nil
}
