package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// maxRequestID bounds the id from a trusted peer, in bytes. Trace ids, sequence numbers
// and joined addresses are all shorter.
const maxRequestID = 128

// requestID returns the id of a request: a valid id from a trusted peer, or a new id.
func requestID(l *http1.List, name string, trusted bool, now time.Time) string {
	if trusted {
		if sent := l.Lines(name); len(sent) == 1 && validRequestID(sent[0]) {
			return sent[0]
		}
	}
	return newRequestID(now)
}

// validRequestID reports whether an id is unambiguous in a header, a log and a URL.
func validRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("._~+/=:-", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// newRequestID returns a UUID of version 7 (RFC 9562): the time to a quarter of a
// microsecond, then 62 random bits. Ids sort by time and are not secret. Collisions are
// very unlikely, which is enough for logs.
func newRequestID(now time.Time) string {
	const perMilli = int64(time.Millisecond)
	nanos := now.UnixNano()
	var id [16]byte
	fraction := uint64(nanos%perMilli) * (1 << 12) / uint64(perMilli)
	binary.BigEndian.PutUint64(id[:8], uint64(nanos/perMilli)<<16|7<<12|fraction)
	binary.BigEndian.PutUint64(id[8:], 1<<63|rand.Uint64()>>2)
	var text [36]byte
	hex.Encode(text[:8], id[:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:], id[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}
