package usage

import "encoding/binary"

const (
	preludeBytes  = 12
	checksumBytes = 4
	// maxFrame bounds a message: the AWS SDKs accept 16 MiB, and 24 MiB with headers.
	maxFrame = 24 << 20
)

// wrapped is how a payload begins whose JSON is the base64 text of a member.
const wrapped = `{"bytes":"`

// frames reads messages of application/vnd.amazon.eventstream: a prelude with two lengths, headers, a payload and a checksum.
type frames struct {
	broken   bool
	length   int8 // of prelude
	matched  int8 // bytes of wrapped that the payload has so far; -1 for other payloads
	headers  uint32
	payload  uint32
	checksum uint32
	number   int
	decoder  sixBits
	prelude  [preludeBytes]byte
}

// write reads bytes, and returns the position behind the last message that is complete; -1 for none.
func (f *frames) write(d *document, v *values, b []byte) (boundary int) {
	boundary = -1
	for i := 0; i < len(b) && !f.broken; {
		rest := b[i:]
		switch {
		case f.headers > 0:
			i += int(take(&f.headers, rest))
		case f.payload > 0:
			n := take(&f.payload, rest)
			f.read(d, v, rest[:n])
			i += int(n)
		case f.checksum > 0:
			i += int(take(&f.checksum, rest))
			if f.checksum == 0 {
				f.number++
				d.reset(v)
				boundary = i
			}
		default:
			i += f.begin(rest)
		}
	}
	return boundary
}

// take lowers left by the bytes of b that belong to it, and returns their number.
func take(left *uint32, b []byte) uint32 {
	n := uint32(min(uint64(*left), uint64(len(b))))
	*left -= n
	return n
}

// begin reads the prelude of a message.
func (f *frames) begin(b []byte) int {
	n := copy(f.prelude[f.length:], b)
	if f.length += int8(n); f.length < preludeBytes {
		return n
	}
	total, headers := binary.BigEndian.Uint32(f.prelude[:]), binary.BigEndian.Uint32(f.prelude[4:])
	if total > maxFrame || headers > total || total-headers < preludeBytes+checksumBytes {
		f.broken = true
		return n
	}
	f.headers, f.payload, f.checksum = headers, total-headers-preludeBytes-checksumBytes, checksumBytes
	f.length, f.matched, f.decoder = 0, 0, sixBits{}
	return n
}

// read reads a part of a payload.
func (f *frames) read(d *document, v *values, b []byte) {
	for len(b) > 0 && f.matched >= 0 && int(f.matched) < len(wrapped) {
		if b[0] != wrapped[f.matched] {
			d.write(v, []byte(wrapped)[:f.matched])
			f.matched = -1
			break
		}
		f.matched++
		b = b[1:]
	}
	switch {
	case len(b) == 0:
	case f.matched < 0:
		d.write(v, b)
	default:
		f.decoder.write(d, v, b)
	}
}

// sixBits decodes base64 up to the end of a JSON string.
type sixBits struct {
	ended bool
	count uint8
	bits  uint32
}

// write decodes bytes, a few at a time.
func (s *sixBits) write(d *document, v *values, b []byte) {
	var out [96]byte
	n := 0
	for _, c := range b {
		if s.ended {
			break
		}
		six, ok := sixOf(c)
		if !ok {
			s.ended = c == '"' || c == '='
			continue
		}
		s.bits = s.bits<<6 | uint32(six)
		if s.count += 6; s.count >= 8 {
			s.count -= 8
			out[n] = byte(s.bits >> s.count)
			n++
		}
		if n == len(out) {
			d.write(v, out[:n])
			n = 0
		}
	}
	d.write(v, out[:n])
}

// sixOf gives the six bits of a letter of base64.
func sixOf(c byte) (six byte, ok bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return c - 'A', true
	case c >= 'a' && c <= 'z':
		return c - 'a' + 26, true
	case c >= '0' && c <= '9':
		return c - '0' + 52, true
	case c == '+':
		return 62, true
	case c == '/':
		return 63, true
	default:
		return 0, false
	}
}
