package script

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Read decodes the reply of the call: one string of little-endian doubles, the time first. Read
// checks the number of doubles, and that each double is whole and below 2^53. Explain checks the
// meaning of the doubles.
func (b *Batch) Read(reply string) error {
	b.numbers = b.numbers[:0]
	if len(reply) != 8*b.width {
		return fmt.Errorf("script: the reply of decide.lua has %d bytes for %d numbers: %s", len(reply), b.width, report)
	}
	for i := 0; i < len(reply); i += 8 {
		f := math.Float64frombits(leUint64(reply[i : i+8]))
		n := int64(f)
		if !(math.Abs(f) < 1<<53) || float64(n) != f {
			b.numbers = b.numbers[:0]
			return fmt.Errorf("script: the reply of decide.lua has the number %v: %s", f, report)
		}
		b.numbers = append(b.numbers, n)
	}
	if now := b.numbers[0]; now <= 0 || now >= latest {
		b.numbers = b.numbers[:0]
		return fmt.Errorf("script: the server's time is %d µs after 1970: set its clock", now)
	}
	return nil
}

// Time gives the server's time of the last reply that Read has read.
func (b *Batch) Time() headgate.Instant { return instant(b.numbers[0]) }

// maxWidth bounds the doubles in the reply for an Op: the widest Plan has 6, and a grant adds one.
const maxWidth = 8

// MaxReply gives the largest size of the reply to a call with this number of Ops, in bytes.
func MaxReply(ops int) int { return 8 * (1 + maxWidth*ops) }

const (
	report = "report this as a bug of Headgate, or check that the address belongs to a Redis server"
	// latest is the end of supported times, in microseconds after 1970. It is in 2112.
	latest = 1 << 52
	// farthest bounds the times after now in a reply, in microseconds. It exceeds the longest window
	// plus the longest ban, and a bucket of 50 years. now plus farthest fits into an Instant.
	farthest = 1 << 51
	// farthestBucket is the longest refill of a bucket, in microseconds.
	farthestBucket = int64(limit.MaxRefill / time.Microsecond)
)

func leUint64(s string) uint64 {
	var b [8]byte
	copy(b[:], s)
	return binary.LittleEndian.Uint64(b[:])
}

// Now gives the time of the batch's decisions, after Read.
func (b *Batch) Now() headgate.Instant {
	if len(b.numbers) == 0 {
		return 0
	}
	return instant(b.numbers[0])
}

func instant(us int64) headgate.Instant { return headgate.Instant(us * int64(time.Microsecond)) }

// version is the version of a state (lua/state.lua). In a receipt, its lower 32 bits are
// Receipt.Returned, and its upper 12 bits are the upper 12 bits of Receipt.FromPart. The lower 52 bits
// of FromPart are the part of the time.
type version int64

const (
	versions    = 1 << 44
	versionLow  = 32
	versionHigh = 52
)

func (v version) put(r *headgate.Receipt) {
	r.Returned = uint32(v)
	r.FromPart |= uint64(v) >> versionLow << versionHigh
}

func versionIn(r *headgate.Receipt) version {
	return version(r.FromPart>>versionHigh<<versionLow | uint64(r.Returned))
}

func partIn(r *headgate.Receipt) int64 { return int64(r.FromPart & (1<<versionHigh - 1)) }
