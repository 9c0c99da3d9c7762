package acceptance

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// stream is requests that are due at the times of a Poisson process, however slow the
// answers are.
type stream struct {
	to string // host:port
	// rate gives how many requests are due in a cycle on average; cycles are counted from
	// the begin of the load.
	rate func(cycle int) float64
	// request gives the text of the next one.
	request func(*rand.Rand) []byte
	// connections bounds what is on its way: what is due beyond waits.
	connections int

	mu       sync.Mutex
	random   *rand.Rand
	at       time.Duration   // when the last request was due, after the begin
	statuses map[int]int     // of the answers
	late     []time.Duration // how long after it was due each answer was there, the first cycle's apart
}

// steadily is a rate that stays.
func steadily(mean float64) func(int) float64 { return func(int) float64 { return mean } }

// dueField is where a request says when it was due, in microseconds of Unix time.
const (
	dueField = "?due="
	dueSpace = "0000000000000000"
)

// byName gives requests of a client, whose name is also the path: the access log tells it.
func byName(name string) []byte {
	return fmt.Appendf(nil, "GET /%s%s%s HTTP/1.1\r\nHost: a\r\nX-Client-Id: %s\r\n\r\n", name, dueField, dueSpace, name)
}

// dated copies a request to another one that says when it was due, if it has room for that.
func dated(to, request []byte, due time.Time) []byte {
	to = append(to[:0], request...)
	if at := bytes.Index(to, []byte(dueField+dueSpace)); at >= 0 {
		strconv.AppendInt(to[:at+len(dueField)], due.UnixMicro(), 10) // It has as many digits until the year 2286.
	}
	return to
}

// always gives the same request.
func always(name string) func(*rand.Rand) []byte {
	text := byName(name)
	return func(*rand.Rand) []byte { return text }
}

// anyOf gives the requests of n clients by chance: a Poisson process of all is one of each.
func anyOf(prefix string, n int) func(*rand.Rand) []byte {
	var texts [][]byte
	for k := range n {
		texts = append(texts, byName(fmt.Sprintf("%s-%03d", prefix, k)))
	}
	return func(random *rand.Rand) []byte { return texts[random.IntN(n)] }
}

// traffic is streams that begin with the same cycle.
type traffic struct {
	cycle   time.Duration
	cycles  int
	streams []*stream

	begin time.Time
}

// run sends all that is due in the cycles of the load, and gives what failed. What is not sent
// when the time is over is left out: the machine was too slow for it.
func (l *traffic) run(t *testing.T) {
	t.Helper()
	l.begin = time.Now().Truncate(l.cycle).Add(l.cycle)
	if time.Until(l.begin) < 50*time.Millisecond {
		l.begin = l.begin.Add(l.cycle)
	}
	var all sync.WaitGroup
	for n, s := range l.streams {
		s.random, s.statuses = rand.New(rand.NewPCG(uint64(n), 5)), map[int]int{}
		for range s.connections {
			all.Go(func() {
				if err := s.ask(l); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
}

// next gives when the next request is due after the begin, and its text; false is the end.
func (s *stream) next(l *traffic) (due time.Duration, request []byte, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.at < time.Duration(l.cycles)*l.cycle {
		border := s.at.Truncate(l.cycle) + l.cycle
		step := border - s.at
		if rate := s.rate(int(s.at / l.cycle)); rate > 0 {
			step = time.Duration(s.random.ExpFloat64() / rate * float64(l.cycle))
		}
		if s.at+step >= border {
			s.at = border // Poisson processes do not remember: the rest goes by the next cycle's rate.
			continue
		}
		s.at += step
		return s.at, s.request(s.random), true
	}
	return 0, nil, false
}

// ask sends requests of the stream over one connection, one after the other.
func (s *stream) ask(l *traffic) error {
	end := l.begin.Add(time.Duration(l.cycles) * l.cycle)
	with := caller{to: s.to, until: end.Add(patience)}
	defer with.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var text []byte
	for {
		due, request, more := s.next(l)
		if !more || time.Now().After(end) {
			return nil
		}
		if wait := time.Until(l.begin.Add(due)); wait > 0 {
			timer.Reset(wait)
			<-timer.C
		}
		text = dated(text, request, l.begin.Add(due))
		status, err := with.ask(text)
		if err != nil {
			return fmt.Errorf("after %v: %w", due, err)
		}
		late := time.Since(l.begin.Add(due))
		s.mu.Lock()
		s.statuses[status]++
		if due >= l.cycle { // Before, connections are made.
			s.late = append(s.late, late)
		}
		s.mu.Unlock()
	}
}

// caller asks over a connection that it keeps.
type caller struct {
	to    string
	until time.Time
	conn  net.Conn
	in    *bufio.Reader
	used  time.Time
}

// mostIdle is how long a connection is kept without a request: less than servers keep it.
const mostIdle = 3 * time.Second

func (c *caller) ask(request []byte) (status int, err error) {
	if c.conn == nil || time.Since(c.used) > mostIdle {
		c.close()
		if c.conn, err = net.DialTimeout("tcp", c.to, patience); err != nil {
			return 0, err
		}
		_ = c.conn.SetDeadline(c.until)
		c.in = bufio.NewReader(c.conn)
	}
	if _, err = c.conn.Write(request); err != nil {
		return 0, err
	}
	c.used = time.Now()
	return readAnswer(c.in)
}

func (c *caller) close() {
	if c.conn != nil {
		c.conn.Close()
	}
}

// readAnswer reads an answer whose length is told, as cheaply as it can.
func readAnswer(in *bufio.Reader) (status int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, fmt.Errorf("no status: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, fmt.Errorf("no status: %q", line)
	}
	length := 0
	for {
		line, err = in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= len("\r\n") {
			_, err = in.Discard(length)
			return status, err
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		} else if bytes.HasPrefix(line, []byte("Transfer-Encoding:")) {
			return 0, fmt.Errorf("an answer of unknown length")
		}
	}
}

// answered is how many answers the streams got, and how many of them were refusals. Any other
// is a fault.
func (l *traffic) answered(t *testing.T) (all, refused int) {
	t.Helper()
	for _, s := range l.streams {
		for status, n := range s.statuses {
			all += n
			switch status {
			case 429:
				refused += n
			case 200:
			default:
				t.Errorf("%d requests were answered %d", n, status)
			}
		}
	}
	return all, refused
}
