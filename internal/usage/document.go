package usage

// step is what the next byte of a document may be.
type step uint8

const (
	atValue   step = iota // a value begins, or space comes before it
	atMember              // in an object on a path: the next name, or the end of the object
	inName                // in such a name
	atColon               // behind it
	atElement             // in the array at the top
	inOther               // in an object or an array beside the paths
	inString              // in a string that no field reads; skipped says where
	inText                // in a string that a field reads
	inScalar              // in a number or a word
)

const (
	// maxToken bounds the names, numbers and texts that are read, in bytes. Longer ones are skipped.
	maxToken = 128
	// inArray marks the array at the top in document.open.
	inArray = int16(-2)
)

// document reads one JSON text, or several behind one another. What is not JSON never stops it: it goes on with the next byte that can
// begin a value.
type document struct {
	step    step
	odd     bool // in a string: a backslash came before
	escaped bool // in a name or a text: a backslash has come
	long    bool // token has too few bytes
	skipped bool // the string is in an object or an array beside the paths
	depth   int8 // of open
	length  uint8
	node    int16 // of the value that comes next or is being read
	other   int32 // depth in what is beside the paths
	open    [MaxDepth + 1]int16
	token   [maxToken]byte
}

// write reads bytes, and gives values to v.
func (d *document) write(v *values, b []byte) {
	for len(b) > 0 {
		var n int
		switch d.step {
		case inOther:
			n = d.skipOther(v, b)
		case inString:
			n = d.leaveString(v, b)
		case inName:
			if n = d.collect(b); d.step != inName {
				d.node = d.member(v.program)
			}
		case inText:
			if n = d.collect(b); d.step != inText {
				v.text(d.node, d.spelled(), d.long)
				d.ended(v)
			}
		case inScalar:
			n = d.scalar(v, b)
		default:
			n = d.structure(v, b)
		}
		b = b[n:]
	}
}

// structure reads what is between values.
func (d *document) structure(v *values, b []byte) int {
	c := b[0]
	switch d.step {
	case atMember:
		switch c {
		case '"':
			return 1 + d.name(v.program, b[1:])
		case '}':
			d.leave(v)
		}
	case atColon:
		if c == ':' {
			d.step = atValue
		}
	case atElement:
		switch c {
		case ']':
			d.leave(v)
		case ',', ' ', '\n', '\r', '\t':
		default:
			d.node, d.step = 0, atValue
			return 0
		}
	default:
		switch c {
		case ' ', '\n', '\r', '\t', ',', ':', '}', ']':
		default:
			return d.begin(v, c)
		}
	}
	return 1
}

// name begins a name. Mostly the whole name is there, and needs no copy.
func (d *document) name(p *Program, b []byte) int {
	if n := plain(b); n >= 0 {
		d.node, d.step = p.find(d.open[d.depth-1], b[:n]), atColon
		return n + 1
	}
	d.beginToken(inName)
	return 0
}

// member finds the node of the collected name.
func (d *document) member(p *Program) int16 {
	if d.long {
		return nowhere
	}
	return p.find(d.open[d.depth-1], d.spelled())
}

// begin begins a value whose first byte is c, and returns the number of bytes that it has read.
func (d *document) begin(v *values, c byte) int {
	reads := d.node != nowhere
	switch c {
	case '{':
		if !reads || int(d.depth) == len(d.open) || len(v.program.nodes[d.node].children) == 0 {
			d.step, d.other = inOther, 1
			return 1
		}
		d.open[d.depth] = d.node
		d.depth++
		d.step = atMember
	case '[':
		if d.depth > 0 || d.node != 0 {
			d.step, d.other = inOther, 1
			return 1
		}
		d.open[0], d.depth, d.step = inArray, 1, atElement
	case '"':
		if reads && v.readsText(d.node) {
			d.beginToken(inText)
			return 1
		}
		d.step, d.odd, d.skipped = inString, false, false
	default:
		if reads && len(v.program.nodes[d.node].fields) == 0 {
			d.node = nowhere
		}
		d.beginToken(inScalar)
		return 0
	}
	return 1
}

// leave ends an object on a path, or the array at the top.
func (d *document) leave(v *values) {
	if d.depth--; d.open[d.depth] == inArray {
		v.documents-- // The array has counted its elements.
	}
	d.ended(v)
}

// ended goes on behind a value.
func (d *document) ended(v *values) {
	switch {
	case d.depth == 0:
		v.documents++
		d.step, d.node = atValue, 0
	case d.open[d.depth-1] == inArray:
		v.documents++
		d.step = atElement
	default:
		d.step = atMember
	}
}

// scalar reads a number or a word, which ends before the next structural byte.
func (d *document) scalar(v *values, b []byte) int {
	for i, c := range b {
		switch c {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			d.endScalar(v)
			return i
		}
		if d.node != nowhere {
			d.put(c)
		}
	}
	return len(b)
}

func (d *document) endScalar(v *values) {
	if d.node != nowhere && !d.long {
		v.scalar(d.node, d.token[:d.length])
	}
	d.ended(v)
}

// reset ends a document, which may be incomplete.
func (d *document) reset(v *values) {
	if d.step == inScalar && d.depth == 0 {
		d.endScalar(v)
	}
	d.step, d.depth, d.node, d.other, d.odd = atValue, 0, 0, 0, false
}
