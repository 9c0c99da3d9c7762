package usage

import "encoding/binary"

const (
	// preludeSize is the size of the lengths and their checksum before each frame; frameEnd is that of the checksum behind it.
	preludeSize, frameEnd = 12, 4
	// maxFrame is the largest frame: services send at most 24 MiB.
	maxFrame = 1 << 25
	// wrapped is how a payload begins that has a document in base64.
	wrapped = `{"bytes":"`
)

// payloadState says what a payload is.
type payloadState uint8

const (
	compared payloadState = iota // its begin is compared with wrapped
	plainly                      // a document
	encoded                      // a document in base64
	behind                       // what follows the document in base64
)

// frameReader scans the payloads of an AWS event stream.
type frameReader struct {
	count                  int
	headers, payload, tail uint32 // bytes that are left
	bits                   uint32 // of base64
	n                      uint8  // bytes of prelude
	match                  uint8  // bytes of wrapped that were seen
	digits                 uint8  // digits of base64 in bits
	state                  payloadState
	bad                    bool
	prelude                [preludeSize]byte
}

// open reports whether a frame has begun and not ended.
func (f *frameReader) open() bool { return f.n > 0 || f.tail > 0 }

// write scans a piece, and returns the offset behind its last complete frame; -1 for none.
func (f *frameReader) write(b []byte, d *document) (boundary int) {
	boundary = -1
	for i := 0; i < len(b) && !f.bad; {
		switch {
		case f.headers > 0:
			i += take(&f.headers, len(b)-i)
		case f.payload > 0:
			k := take(&f.payload, len(b)-i)
			f.read(b[i:i+k], d)
			i += k
		case f.tail > 0:
			i += take(&f.tail, len(b)-i)
			if f.tail == 0 {
				f.count++
				d.reset()
				boundary = i
			}
		default:
			k := copy(f.prelude[f.n:], b[i:])
			f.n += uint8(k)
			i += k
			f.begin()
		}
	}
	return boundary
}

// take takes up to n bytes of what is left.
func take(left *uint32, n int) int {
	k := min(n, int(*left))
	*left -= uint32(k)
	return k
}

// begin begins a frame when its prelude is complete.
func (f *frameReader) begin() {
	if f.n < preludeSize {
		return
	}
	total, headers := binary.BigEndian.Uint32(f.prelude[:]), binary.BigEndian.Uint32(f.prelude[4:])
	if total > maxFrame || headers > maxFrame || total < headers+preludeSize+frameEnd {
		f.bad = true
		return
	}
	f.headers, f.payload, f.tail, f.n = headers, total-headers-preludeSize-frameEnd, frameEnd, 0
	f.state, f.match, f.digits, f.bits = compared, 0, 0, 0
}

// read reads a piece of a payload.
func (f *frameReader) read(b []byte, d *document) {
	if f.state == compared {
		b = f.compare(b, d)
	}
	switch f.state {
	case plainly:
		d.write(b)
	case encoded:
		f.decode(b, d)
	case compared, behind:
	}
}

// compare compares the begin of a payload with wrapped, and returns what follows.
func (f *frameReader) compare(b []byte, d *document) []byte {
	for i, c := range b {
		if c != wrapped[f.match] {
			f.state = plainly
			d.write([]byte(wrapped[:f.match]))
			return b[i:]
		}
		if f.match++; int(f.match) == len(wrapped) {
			f.state = encoded
			return b[i+1:]
		}
	}
	return nil
}

// decode scans a document in base64.
func (f *frameReader) decode(b []byte, d *document) {
	var out [240]byte
	n := 0
	for _, c := range b {
		if c == '"' {
			f.state = behind
			break
		}
		v, ok := digit64(c)
		if !ok { // padding, or the escape of a slash
			continue
		}
		f.bits = f.bits<<6 | v
		f.digits++
		switch f.digits {
		case 2:
			out[n] = byte(f.bits >> 4)
		case 3:
			out[n] = byte(f.bits >> 2)
		case 4:
			out[n] = byte(f.bits)
			f.digits, f.bits = 0, 0
		default:
			continue
		}
		if n++; n == len(out) {
			d.write(out[:n])
			n = 0
		}
	}
	d.write(out[:n])
}

// digit64 gives the value of a digit of base64.
func digit64(c byte) (v uint32, ok bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return uint32(c - 'A'), true
	case c >= 'a' && c <= 'z':
		return uint32(c-'a') + 26, true
	case c >= '0' && c <= '9':
		return uint32(c-'0') + 52, true
	case c == '+':
		return 62, true
	case c == '/':
		return 63, true
	}
	return 0, false
}
