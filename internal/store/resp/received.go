package resp

import "math"

// The phases of an incoming reply.
const (
	inType   = iota // the first byte of an element
	inNumber        // a length, or an integer
	inText          // the rest of a line
	inByte          // the letter of a boolean
	inData          // the bytes of a string
	inCR            // an expected line end
	inLF
)

// maxNesting has one level more than maxDepth, for the element itself.
const maxNesting = maxDepth + 1

// incoming is the state of one reply.
type incoming struct {
	phase int
	// bounds are the bounds of the reply's kind. bytes and elements count what has arrived.
	bounds   bounds
	kind     kind
	bytes    int64
	elements int64
	// depth is the number of open arrays. left is the number of missing elements of each.
	depth int
	left  [maxNesting]int64
	// top is the type of the reply, kids its number of elements, and at the current one.
	top  byte
	kids int64
	at   int64
	push bool

	// The current element.
	typ      byte
	number   int64
	digits   int
	negative bool
	size     int64 // the missing bytes of a string, or the bytes of a line so far
	text     word
	quote    quote
	// cause is the text after the last " -" of an error. spaced: the last byte was a space.
	cause          word
	spaced, caused bool
	// name and channel are the first two elements of a push message.
	name, channel word
}

// received checks the next bytes, at least one, and gives how many.
func (c *Checker) received(p []byte) int {
	in := &c.in
	n := 1
	switch in.phase {
	case inType:
		c.begin(p[0])
	case inNumber:
		c.digit(p[0])
	case inText:
		c.character(p)
	case inByte:
		in.phase = inCR
		if p[0] != 't' && p[0] != 'f' {
			c.refusef("the boolean %q", p[0])
		}
	case inData:
		n = c.payload(p)
	case inCR:
		in.phase = inLF
		if p[0] != '\r' {
			c.refusef("%q where a line ends", p[0])
		}
	case inLF:
		in.phase = inType
		if p[0] != '\n' {
			c.refusef("%q where a line ends", p[0])
		}
		c.lineEnded()
	}
	in.bytes += int64(n)
	if in.bytes > in.bounds.bytes {
		c.refusef("a reply of more than %d bytes", in.bounds.bytes)
	}
	return n
}

// begin reads the type of an element.
func (c *Checker) begin(typ byte) {
	in := &c.in
	if in.depth == 0 {
		c.beginReply(typ)
	}
	in.typ, in.number, in.digits, in.negative, in.size = typ, 0, 0, false, 0
	in.text, in.quote = word{}, 0
	in.cause, in.spaced, in.caused = word{}, false, false
	switch typ {
	case '+', '-', ',', '(':
		in.phase = inText
	case ':', '$', '=', '*', '%', '~':
		in.phase = inNumber
	case '>':
		in.phase = inNumber
		if in.depth > 0 {
			c.refusef("a push message within a reply")
		}
	case '_':
		in.phase = inCR
	case '#':
		in.phase = inByte
	default:
		c.refusef("the type %q", typ)
	}
}

// beginReply finds which reply begins, and checks that the reply is expected.
func (c *Checker) beginReply(typ byte) {
	k, has := c.waits.next()
	c.in = incoming{top: typ, kind: k, push: c.isPush(typ)}
	in := &c.in
	switch {
	case in.push && !c.subscribed:
		c.refusef("a push message without a subscription")
	case in.push:
		in.bounds = pushed()
	case !has:
		c.refusef("%q begins a reply that no command awaits", typ)
	default:
		in.bounds = c.boundsOf(k)
		if !admits(k, typ) {
			c.refusef("%q begins a reply of another kind than the command has", typ)
		}
	}
}

// isPush reports whether a reply is a push message. In RESP2 those are arrays.
func (c *Checker) isPush(typ byte) bool {
	return typ == '>' || typ == '*' && c.subscribed && !c.modern
}

// admits reports whether a reply of a kind may begin with a type.
func admits(k kind, typ byte) bool {
	switch k {
	case table:
		return true
	case role:
		return typ == '*' || typ == '-'
	case pair:
		return typ == '*' || typ == '-' || typ == '_'
	case subscription, unsubscription:
		return typ == '-'
	case pong:
		return typ == '+' || typ == '-'
	default:
		return typ != '*' && typ != '%' && typ != '~'
	}
}

// digit reads a length or an integer, to the CR.
func (c *Checker) digit(b byte) {
	in := &c.in
	switch {
	case b == '\r' && in.digits > 0:
		in.phase = inLF
	case b == '-' && in.digits == 0 && !in.negative:
		in.negative = true
	case b >= '0' && b <= '9' && in.number <= (math.MaxInt64-9)/10 && in.digits < 19:
		in.number = in.number*10 + int64(b-'0')
		in.digits++
	default:
		c.refusef("%q in a number", b)
	}
}

// character reads a byte of a line, to the CR.
func (c *Checker) character(p []byte) {
	in := &c.in
	switch b := p[0]; {
	case b == '\r':
		in.phase = inLF
	case b == '\n':
		c.refusef("a line without a carriage return")
	default:
		in.text.addCounted(p[:1])
		in.quote.add(b)
		in.addCause(b)
		if in.size++; in.size > maxLine {
			c.refusef("a line of more than %d bytes", maxLine)
		}
	}
}

// payload skips the bytes of a string.
func (c *Checker) payload(p []byte) int {
	in := &c.in
	n := int(min(in.size, int64(len(p))))
	if in.push {
		in.text.addCounted(p[:n])
	}
	if in.size -= int64(n); in.size == 0 {
		in.phase = inCR
	}
	return n
}

// lineEnded continues after a line: with the announced bytes or elements, or with the next
// element.
func (c *Checker) lineEnded() {
	in := &c.in
	switch in.typ {
	case '$', '=':
		if in.digits > 0 { // The line was a length. The line end after the bytes has no digits.
			c.stringBegins()
			return
		}
	case '*', '%', '~', '>':
		c.arrayBegins()
		return
	}
	c.elementEnded()
}

// stringBegins reads the length of a string. -1 is RESP2's null.
func (c *Checker) stringBegins() {
	in := &c.in
	size := in.number
	in.digits = 0
	switch {
	case in.negative && (size != 1 || in.typ != '$'):
		c.refusef("a string of -%d bytes", size)
	case in.negative:
		c.elementEnded()
	case size > in.bounds.text:
		c.refusef("a string of %d bytes: %d at most are expected", size, in.bounds.text)
	default:
		if in.size, in.phase = size, inData; size == 0 {
			in.phase = inCR
		}
	}
}

// arrayBegins reads the number of elements. -1 is RESP2's null.
func (c *Checker) arrayBegins() {
	in := &c.in
	count := in.number
	switch {
	case in.negative && (count != 1 || in.typ != '*'), in.push && in.depth == 0 && (in.negative || count == 0):
		c.refusef("an array with the number of elements %d below 0, or a push message without any", count)
		return
	case in.negative:
		c.elementEnded()
		return
	case count > in.bounds.elements:
		c.refusef("an array of %d elements: %d at most are expected", count, in.bounds.elements)
		return
	}
	if in.typ == '%' {
		count *= 2
	}
	if in.elements += count; in.elements > in.bounds.elements || in.depth >= in.bounds.depth {
		c.refusef("a reply of %d elements, %d deep", in.elements, in.depth+1)
		return
	}
	if in.depth == 0 {
		in.kids = count
	}
	if count == 0 {
		c.elementEnded()
		return
	}
	in.left[in.depth] = count
	in.depth++
}

// elementEnded closes each array that is complete, and then the reply.
func (c *Checker) elementEnded() {
	in := &c.in
	in.phase = inType
	for in.depth > 0 {
		if in.depth == 1 {
			c.kidEnded()
		}
		if in.left[in.depth-1]--; in.left[in.depth-1] > 0 {
			return
		}
		in.depth--
	}
	c.replyEnded()
}

// kidEnded records the elements of a push message.
func (c *Checker) kidEnded() {
	in := &c.in
	switch in.at {
	case 0:
		in.name = in.text
	case 1:
		in.channel = in.text
	}
	in.at++
}
