package resp

import "bytes"

// The phases of an outgoing command.
const (
	outStar   = iota // "*" begins a command
	outCount         // the number of arguments
	outDollar        // "$" begins an argument
	outSize          // the number of bytes
	outData          // the bytes
	outCR
	outLF
)

// outgoing is the state of one command. The client writes commands as arrays of bulk strings.
type outgoing struct {
	phase int
	left  int64 // the missing arguments of the command
	args  int64 // all arguments of the command
	size  int64 // the missing bytes of an argument
	words [2]word
}

// Sent checks bytes before they are written. Call Sent before the write, because the reply may
// arrive at once.
func (c *Checker) Sent(p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	for len(p) > 0 {
		n, ok := c.sent(p)
		if !ok {
			c.refusef("a command was sent that is no array of strings, or too many are unanswered: %q", head(p))
			return c.err
		}
		p = p[n:]
	}
	return nil
}

// sent checks the next bytes, at least one, and gives how many.
func (c *Checker) sent(p []byte) (int, bool) {
	o := &c.out
	switch o.phase {
	case outStar:
		*o = outgoing{phase: outCount}
		return 1, p[0] == '*'
	case outCount:
		end, ok := readSize(&o.left, p[0])
		if end {
			o.args, o.phase = o.left, outDollar
			ok = o.left > 0
		}
		return 1, ok
	case outDollar:
		o.phase, o.size = outSize, 0
		return 1, p[0] == '$'
	case outSize:
		end, ok := readSize(&o.size, p[0])
		if end {
			o.phase = outData
		}
		return 1, ok
	case outData:
		return c.data(p), true
	case outCR:
		o.phase = outLF
		return 1, p[0] == '\r'
	default:
		o.phase = outDollar
		if o.left--; o.left == 0 {
			o.phase = outStar
			return 1, p[0] == '\n' && c.await()
		}
		return 1, p[0] == '\n'
	}
}

// data reads bytes of an argument. The first two arguments name the command.
func (c *Checker) data(p []byte) int {
	o := &c.out
	n := int(min(o.size, int64(len(p))))
	if at := o.args - o.left; at < int64(len(o.words)) {
		o.words[at].add(p[:n])
	}
	if o.size -= int64(n); o.size == 0 {
		o.phase = outCR
	}
	return n
}

// readSize reads a byte of a length, and reports whether the byte was the LF after the digits.
func readSize(size *int64, b byte) (end, ok bool) {
	switch {
	case b == '\n':
		return true, true
	case b == '\r':
		return false, true
	case b < '0' || b > '9' || *size > 1<<40:
		return false, false
	default:
		*size = *size*10 + int64(b-'0')
		return false, true
	}
}

// await records the expected reply of a complete command.
func (c *Checker) await() bool {
	name, second := &c.out.words[0], &c.out.words[1]
	k := c.kinds(name, second)
	switch k {
	case subscription:
		c.subscribed = true
		return c.waits.add(k, max(c.out.args-1, 1))
	case unsubscription:
		c.subscribed = true
	case scalar:
		if c.pings && name.is("PING") {
			k = pong
		}
	default:
	}
	c.pings = k == unsubscription
	return c.waits.add(k, 1)
}

// kinds is kindOf without an allocation for frequent commands.
func (c *Checker) kinds(name, second *word) kind {
	if name.is("EVALSHA") || name.is("EVAL") || name.is("PING") {
		return scalar
	}
	return kindOf(string(name.bytes()), string(second.bytes()))
}

// word keeps the first bytes of a text, and counts its spaces.
type word struct {
	text   [24]byte
	length int
	spaces int
}

func (w *word) add(p []byte) {
	w.length += copy(w.text[w.length:], p)
}

func (w *word) addCounted(p []byte) {
	w.add(p)
	w.spaces += bytes.Count(p, []byte{' '})
}

func (w *word) bytes() []byte { return w.text[:w.length] }

func (w *word) is(text string) bool { return string(w.bytes()) == text }

func (w *word) begins(text string) bool { return bytes.HasPrefix(w.bytes(), []byte(text)) }

// head gives the first bytes for an error.
func head(p []byte) []byte { return p[:min(len(p), 24)] }
