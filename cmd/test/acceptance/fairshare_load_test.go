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

// stream sends requests at the times of a Poisson process, also while answers are slow.
type stream struct {
	to string // host:port
	// rate gives the average number of requests in a cycle. Cycles are counted from the start of the
	// load.
	rate func(cycle int) float64
	// request gives the text of the next request.
	request func(*rand.Rand) []byte
	// connections bounds the requests in flight: further due requests wait.
	connections int

	mu       sync.Mutex
	random   *rand.Rand
	at       time.Duration   // the due time of the last request, from the start
	statuses map[int]int     // answers by status
	late     []time.Duration // delays of the answers after the due times, without the first cycle
}

// steadily gives a constant rate.
func steadily(mean float64) func(int) float64 { return func(int) float64 { return mean } }

// dueField is the place of the due time in a request, in microseconds of Unix time.
const (
	dueField = "?due="
	dueSpace = "0000000000000000"
)

// byName gives requests of a client. The path is also the client's name, so that the access log
// has it.
func byName(name string) []byte {
	return fmt.Appendf(nil, "GET /%s%s%s HTTP/1.1\r\nHost: a\r\nX-Client-Id: %s\r\n\r\n", name, dueField, dueSpace, name)
}

// dated copies a request and sets its due time, if the request has the field.
func dated(to, request []byte, due time.Time) []byte {
	to = append(to[:0], request...)
	if at := bytes.Index(to, []byte(dueField+dueSpace)); at >= 0 {
		strconv.AppendInt(to[:at+len(dueField)], due.UnixMicro(), 10) // The number of digits stays the same until the year 2286.
	}
	return to
}

// always gives the same request each time.
func always(name string) func(*rand.Rand) []byte {
	text := byName(name)
	return func(*rand.Rand) []byte { return text }
}

// anyOf gives requests of n random clients. Each client's requests are then a Poisson process
// too.
func anyOf(prefix string, n int) func(*rand.Rand) []byte {
	var texts [][]byte
	for k := range n {
		texts = append(texts, byName(fmt.Sprintf("%s-%03d", prefix, k)))
	}
	return func(random *rand.Rand) []byte { return texts[random.IntN(n)] }
}

// traffic is a set of streams that start with the same cycle.
type traffic struct {
	cycle   time.Duration
	cycles  int
	streams []*stream

	begin time.Time
}

// run sends all due requests of the load's cycles, and gives errors. It drops requests that were
// not sent by the end, because the machine was too slow.
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

// next gives the due time of the next request from the start, and its text. It reports false at
// the end.
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
			s.at = border // A Poisson process has no memory, so the remaining time uses the next cycle's rate.
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
		if due >= l.cycle { // The first cycle also makes the connections.
			s.late = append(s.late, late)
		}
		s.mu.Unlock()
	}
}

// caller sends requests over one connection.
type caller struct {
	to    string
	until time.Time
	conn  net.Conn
	in    *bufio.Reader
	used  time.Time
}

// mostIdle is the longest idle time of a connection. Servers keep connections for longer.
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

// readAnswer reads an answer with a Content-Length, with little effort.
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

// answered gives the number of answers and of refusals. Any other status fails the test.
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
