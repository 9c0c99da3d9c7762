package proxy

import (
	"fmt"
	"net"
	"strings"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/guard/report"
)

// conversation is what a client sends on one connection.
type conversation struct {
	name    string
	pieces  []string // sent one after another; the proxy reads each piece on its own
	trusted bool     // the client is a trusted peer
	frames  bool     // the bytes are frames of HTTP/2
	ending  ending
}

// ending says how the client ends its connection, when the proxy has stopped to act.
type ending uint8

const (
	endHalf    ending = iota // close the sending side, then wait for the proxy
	endSilence               // wait until every timeout has passed
	endReset                 // reset the connection
	endings
)

// said makes a conversation of one piece.
func said(name, sent string) *conversation {
	return &conversation{name: name, pieces: []string{sent}}
}

// splitAt returns c with its bytes in two pieces.
func (c *conversation) splitAt(i int) *conversation {
	sent := strings.Join(c.pieces, "")
	split := *c
	split.pieces = []string{sent[:i], sent[i:]}
	return &split
}

const (
	// patience bounds how long the driver waits for a request in flight, on the clock of a bubble.
	// It is longer than the delays of rules and the timeouts that end without the client.
	patience = 10
	// flushing is longer than the time for which the access log gathers lines, and than lingering.
	flushing = 1100 * time.Millisecond
)

// settle waits until the proxy waits for its client, or for patience seconds.
func (p *plane) settle() {
	synctest.Wait()
	for range patience {
		if p.traffic.InFlight.Load() == 0 {
			return
		}
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		synctest.Wait()
	}
}

// converse sends c to a plane in memory. The caller is in a bubble.
func (p *plane) converse(c *conversation) *transcript {
	before := p.counters()
	from := untrustedPeer
	if c.trusted {
		from = trustedPeer
	}
	conn, err := p.clients.(*memoryListener).connect(&net.TCPAddr{IP: from.Addr().AsSlice(), Port: 40000})
	if err != nil {
		return &transcript{ended: err.Error()}
	}
	for _, piece := range c.pieces {
		_, _ = conn.Write([]byte(piece))
		synctest.Wait()
	}
	p.settle()
	before.ended = "the client"
	early, ended := conn.in.peek()
	if ended {
		before.ended = "the proxy"
	}
	switch c.ending {
	case endHalf:
		_ = conn.CloseWrite()
	case endSilence:
		time.Sleep(2 * planeIdle) //nolint:forbidigo // In a bubble.
	default:
		conn.Abort()
	}
	p.settle()
	time.Sleep(flushing) //nolint:forbidigo // In a bubble.
	synctest.Wait()
	received, ended := conn.in.peek()
	if c.ending == endReset {
		received, ended = early, false
	}
	_ = conn.Close()
	synctest.Wait()
	t := p.transcribe(before, received, ended)
	if t.early = early; c.frames {
		t.readFrames(received)
	}
	return t
}

// transcribe collects what a connection has caused since before.
func (p *plane) transcribe(before counters, received []byte, ended bool) *transcript {
	t := &transcript{ended: before.ended, verdicts: p.verdicts.take(), upstream: p.upstream.take()}
	for line := range strings.Lines(p.lines.Take()) {
		t.lines = append(t.lines, line)
	}
	t.counted = p.counters().since(before)
	if !ended {
		t.ended += ", and the proxy leaves it open"
	}
	t.read(received, ended)
	return t
}

// read parses the answers. The access log tells their methods.
func (t *transcript) read(received []byte, ended bool) {
	for i := 0; len(received) > 0; {
		method := ""
		if i < len(t.lines) {
			method = textOf(t.lines[i], "method")
		}
		var m wireMessage
		m, received = parseResponse(received, method, ended)
		t.answers = append(t.answers, m)
		switch status := m.word(1); {
		case m.fault != "" || !m.whole:
			t.after = string(received)
			return
		case status == "101":
			t.after = string(received)
			return
		case status < "200":
		default:
			i++
		}
	}
}

// textOf returns the text of a name in a line of the access log.
func textOf(line, name string) string {
	_, value, _ := strings.Cut(line, `"`+name+`":"`)
	value, _, _ = strings.Cut(value, `"`)
	return value
}

// counters are the counts of a plane.
type counters struct {
	answers  [3][6]uint64 // by origin and class
	service  int          // requests whose service time was counted
	requests int          // those whose whole time was
	failures [4]uint64
	inFlight int64
	waiting  int64
	open     int64
	ended    string
}

func (p *plane) counters() (c counters) {
	for from := range c.answers {
		for i := range c.answers[from] {
			c.answers[from][i] = p.traffic.AnswersFrom(report.Origin(from), classes[i])
		}
	}
	c.service, c.requests = durations(&p.traffic.ServiceTime), durations(&p.traffic.RequestTime)
	for i := range c.failures {
		c.failures[i] = p.traffic.UpstreamFailures(failureKinds[i])
	}
	c.inFlight, c.waiting, c.open = p.traffic.InFlight.Load(), p.traffic.Waiting.Load(), p.server.open.Load()
	return c
}

// durations returns the number of durations.
func durations(d *report.Durations) (n int) {
	for _, count := range d.AppendBuckets(nil) {
		n += int(count)
	}
	return n
}

// since describes what was counted since before, and what is not back to 0.
func (c counters) since(before counters) string {
	var text strings.Builder
	for from := range c.answers {
		for i := range c.answers[from] {
			if n := c.answers[from][i] - before.answers[from][i]; n > 0 {
				fmt.Fprintf(&text, "%d %s of %s, ", n, classes[i], report.Origin(from))
			}
		}
	}
	fmt.Fprintf(&text, "%d service times, %d request times, ", c.service-before.service, c.requests-before.requests)
	for i := range c.failures {
		if n := c.failures[i] - before.failures[i]; n > 0 {
			fmt.Fprintf(&text, "%d upstream %s, ", n, failureKinds[i])
		}
	}
	fmt.Fprintf(&text, "%d in flight, %d waiting, %d open", c.inFlight, c.waiting, c.open)
	return text.String()
}

// describe tells what c sends, for the report of a difference.
func (c *conversation) describe() string {
	return fmt.Sprintf("%s: trusted %v, ending %d, sent %.3000q\n", c.name, c.trusted, c.ending, c.pieces)
}
