package usage

import "bytes"

// maxFrames bounds the depth to which Walk knows the places of values.
const maxFrames = 32

// Visitor gets the values of a body. Slices are valid during the call.
type Visitor interface {
	// String gets a string without quotes, its name if it is a member of an object, and a bit for each field that it belongs to. The
	// string and the name may have escapes. cut says that the body ended inside of the string.
	String(fields uint64, name, text []byte, cut bool)
	// Scalar gets a number or a literal that belongs to a field.
	Scalar(fields uint64, text []byte)
}

// walk is the state of Walk.
type walk struct {
	program *Program
	visitor Visitor
	name    []byte // of the value that begins; nil in arrays
	node    int16  // of the value that begins
	depth   int
	frames  [maxFrames]frame
}

// Walk visits the strings of a body that is in memory, and the numbers and literals of fields. The kinds of fields do not matter. Walk
// reads whatever is there: a body that is cut, or that is no JSON, has fewer values.
func (p *Program) Walk(body []byte, v Visitor) {
	w := walk{program: p, visitor: v}
	for i := 0; i < len(body); {
		switch c := body[i]; c {
		case '"':
			i += w.text(body[i:])
		case '{', '[':
			w.enter(c == '[')
			i++
		case '}', ']':
			w.leave()
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
		default:
			i += w.scalar(body[i:])
		}
	}
}

// text visits the string at the begin, or takes it as the name of a member, and returns its length.
func (w *walk) text(b []byte) int {
	n, done := stringEnd(b[1:])
	if !done {
		w.visitor.String(0, w.name, b[1:], true)
		return len(b)
	}
	text := b[1:n]
	n++
	if !w.inArray() && named(b[n:]) {
		w.name, w.node = text, w.member(text)
		return n
	}
	w.visitor.String(w.fields(), w.name, text, false)
	return n
}

// stringEnd gives the offset behind the text of a string, whose first quote is before b.
func stringEnd(b []byte) (n int, done bool) {
	for i := 0; ; {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return len(b), false
		}
		if trailingEscapes(b[i:i+j])&1 == 0 {
			return i + j + 1, true
		}
		i += j + 1
	}
}

// named reports whether a colon follows.
func named(b []byte) bool {
	for _, c := range b {
		if !blank(c) {
			return c == ':'
		}
	}
	return false
}

func (w *walk) inArray() bool {
	return w.depth > 0 && w.depth <= maxFrames && w.frames[w.depth-1].array
}

// fields gives the fields of the value that begins.
func (w *walk) fields() uint64 {
	if w.node == none {
		return 0
	}
	return w.program.nodes[w.node].fields
}

// member finds the node of a member of the innermost object.
func (w *walk) member(name []byte) int16 {
	if w.depth == 0 || w.depth > maxFrames || w.frames[w.depth-1].node == none {
		return none
	}
	at := w.frames[w.depth-1].node
	if bytes.IndexByte(name, '\\') < 0 {
		return w.program.find(at, name)
	}
	if len(name) > 6*maxToken {
		return none
	}
	var space [6 * maxToken]byte
	return w.program.find(at, Unescape(space[:0], name))
}

// enter enters an object or an array.
func (w *walk) enter(array bool) {
	at := w.node
	if array && at != none && (at != 0 || w.depth > 0) {
		at = w.program.nodes[at].element
	}
	if w.depth < maxFrames {
		w.frames[w.depth] = frame{node: at, array: array}
	}
	w.depth++
	w.node, w.name = none, nil
	if array {
		w.node = at
	}
}

// leave ends the innermost object or array.
func (w *walk) leave() {
	if w.depth > 0 {
		w.depth--
	}
	w.node, w.name = none, nil
	switch {
	case w.depth == 0:
		w.node = 0
	case w.inArray():
		w.node = w.frames[w.depth-1].node
	}
}

// scalar visits the number or literal at the begin, and returns its length.
func (w *walk) scalar(b []byte) int {
	n := 1
	for n < len(b) && !ends(b[n]) && b[n] != '"' && b[n] != ':' && b[n] != '{' && b[n] != '[' {
		n++
	}
	if f := w.fields(); f != 0 && n < len(b) {
		w.visitor.Scalar(f, b[:n])
	}
	return n
}
