package usage

// state says what a document expects next.
type state uint8

const (
	inValue  state = iota // a value begins
	inObject              // a name or the end of an object on a path
	inName                // a name that is read piece by piece
	inColon
	inArray      // an element or the end of an array on a path
	inSkipped    // an object or array that no path enters
	inSkippedTxt // a string that no field reads
	inScalar     // a number or a literal
	inText       // a string that a field reads
)

// frame is an open object or array on a path.
type frame struct {
	node  int16
	array bool
}

// document scans JSON: one document, or several one after another. An array at the top is a sequence of documents.
type document struct {
	program *Program
	// has contains a bit for each field that was seen.
	has uint64
	// skip is the number of open objects and arrays that no path enters; documents counts finished documents.
	skip, documents int
	node            int16 // of the value that begins; none beside the paths
	n               int16 // bytes of token
	state           state
	depth           int8 // open frames
	escape          bool // in a string: the next byte is escaped
	escaped, over   bool // the token has escapes; the token is too long
	inside          bool // the skipped string is inside of a skipped container
	broken          bool // something was not JSON
	textLen         uint8
	frames          [MaxDepth + 1]frame
	token           [maxToken]byte
	text            [maxToken]byte
	values          [MaxFields]int64
}

// reset ends a document that may be cut, and keeps the values.
func (d *document) reset() {
	if d.state == inScalar && d.depth == 0 {
		d.endScalar()
	}
	if d.open() {
		d.broken = true
	}
	d.state, d.depth, d.skip, d.node, d.escape, d.inside = inValue, 0, 0, 0, false, false
}

// open reports whether a document has begun and not ended.
func (d *document) open() bool { return d.depth > 0 || d.state != inValue }

// write scans a piece.
func (d *document) write(b []byte) {
	for i := 0; i < len(b); {
		i += d.step(b[i:])
	}
}

// step scans the next token of a piece, or its begin, and returns its length.
func (d *document) step(b []byte) int {
	switch d.state {
	case inValue:
		return d.value(b)
	case inObject:
		return d.object(b)
	case inName:
		n, done := d.collect(b)
		if done {
			d.node, d.state = d.lookup(), inColon
		}
		return n
	case inColon:
		if b[0] == ':' {
			d.state = inValue
		} else if !blank(b[0]) {
			d.broken = true
		}
		return 1
	case inArray:
		return d.array(b[0])
	case inSkipped:
		return d.skipContainer(b)
	case inSkippedTxt:
		return d.skipText(b)
	case inScalar:
		return d.scalar(b)
	default:
		n, done := d.collect(b)
		if done {
			d.string()
			d.ended()
		}
		return n
	}
}

// value begins a value.
func (d *document) value(b []byte) int {
	switch c := b[0]; c {
	case ' ', '\n', '\r', '\t':
		return 1
	case ',':
		return 1 // between documents of a sequence
	case ':', '}', ']':
		d.broken = true
		return 1
	case '{':
		d.enter(false)
		return 1
	case '[':
		d.enter(true)
		return 1
	case '"':
		d.escape, d.n, d.escaped, d.over, d.inside = false, 0, false, false, false
		d.state = inSkippedTxt
		if d.node != none && d.program.nodes[d.node].texts != 0 {
			d.state = inText
		}
		return 1
	default:
		if d.node != none && d.program.nodes[d.node].fields == 0 {
			d.node = none
		}
		d.state, d.n, d.over = inScalar, 0, false
		if c != '-' && c != 't' && c != 'f' && c != 'n' && (c < '0' || c > '9') {
			d.broken = true
		}
		return 0
	}
}

// enter enters an object or an array, or begins to skip it.
func (d *document) enter(array bool) {
	at := d.node
	if at == none || int(d.depth) == len(d.frames) {
		d.state, d.skip = inSkipped, 1
		return
	}
	n := &d.program.nodes[at]
	switch {
	case array && at == 0 && d.depth == 0: // a sequence of documents
	case array && n.element != none:
		at = n.element
	case array || len(n.children) == 0:
		d.state, d.skip = inSkipped, 1
		return
	}
	d.frames[d.depth] = frame{node: at, array: array}
	d.depth++
	d.state = inObject
	if array {
		d.state = inArray
	}
}

// object reads a name, mostly with its colon, or the end of an object.
func (d *document) object(b []byte) int {
	switch b[0] {
	case '"':
		k := shortText(b[1:])
		if k < 0 {
			d.state, d.n, d.escaped, d.over, d.escape = inName, 0, false, false, false
			return 1
		}
		d.node = d.program.find(d.frames[d.depth-1].node, b[1:1+k])
		k += 2
		if k < len(b) && b[k] == ':' {
			d.state = inValue
			return k + 1
		}
		d.state = inColon
		return k
	case '}':
		d.leave()
	case ',', ' ', '\n', '\r', '\t':
	default:
		d.broken = true
	}
	return 1
}

// array reads what is between the elements of an array.
func (d *document) array(c byte) int {
	switch c {
	case ']':
		d.leave()
		return 1
	case ',', ' ', '\n', '\r', '\t':
		return 1
	}
	d.node, d.state = d.frames[d.depth-1].node, inValue
	return 0
}

// leave ends the innermost object or array on a path.
func (d *document) leave() {
	d.depth--
	if d.depth == 0 && d.frames[0].array { // the end of a sequence
		d.state, d.node = inValue, 0
		return
	}
	d.ended()
}

// ended goes on after a value.
func (d *document) ended() {
	if d.depth == 0 {
		d.documents++
		d.state, d.node = inValue, 0
		return
	}
	if d.depth == 1 && d.frames[0].array {
		d.documents++
	}
	d.state = inObject
	if d.frames[d.depth-1].array {
		d.state = inArray
	}
}

// scalar reads a number or a literal.
func (d *document) scalar(b []byte) int {
	for i, c := range b {
		if ends(c) {
			d.endScalar()
			return i
		}
		if d.node != none {
			d.put(c)
		}
	}
	return len(b)
}

func (d *document) endScalar() {
	if d.node != none && !d.over {
		d.literal()
	}
	d.ended()
}

// collect reads a string into the token, and reports whether it ends in the piece.
func (d *document) collect(b []byte) (n int, done bool) {
	for i, c := range b {
		switch {
		case d.escape:
			d.escape = false
			d.put(c)
		case c == '"':
			return i + 1, true
		case c == '\\':
			d.escape, d.escaped = true, true
			d.put(c)
		default:
			d.put(c)
		}
	}
	return len(b), false
}

func (d *document) put(c byte) {
	if int(d.n) < len(d.token) {
		d.token[d.n] = c
		d.n++
		return
	}
	d.over = true
}

// lookup finds the child of the name in the token.
func (d *document) lookup() int16 {
	if d.over {
		return none
	}
	if !d.escaped {
		return d.program.find(d.frames[d.depth-1].node, d.token[:d.n])
	}
	var space [maxToken]byte
	return d.program.find(d.frames[d.depth-1].node, Unescape(space[:0], d.token[:d.n]))
}

// skipText skips a string that no field reads, and counts the bytes of those whose length a field reads.
func (d *document) skipText(b []byte) int {
	n, done := d.skipString(b)
	if !d.inside && d.node != none {
		if f := d.program.nodes[d.node].lengthOf; f >= 0 {
			length := int64(n)
			if done {
				length--
			}
			d.values[f] = min(d.values[f]+length, maxNumber)
			d.has |= 1 << f
		}
	}
	if !done {
		return n
	}
	if d.inside {
		d.state = inSkipped
	} else {
		d.ended()
	}
	return n
}

// blank reports whether a byte is white space of JSON.
func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// ends reports whether a byte ends a number or a literal.
func ends(c byte) bool { return c == ',' || c == '}' || c == ']' || blank(c) }
