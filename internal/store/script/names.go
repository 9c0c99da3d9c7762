package script

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate/limit"
)

// Slots is the number of hash slots of a Redis Cluster.
const Slots = 16384

// Names gives the names of keys in Redis. Names is immutable, and safe for concurrent use.
//
// No character of a name comes from a client: a name has the digest, the window, and the limit's
// algorithm and period.
type Names struct {
	// tags are the hash tags of the used slots; empty for all slots.
	tags  []string
	slots []uint16
}

// NewNames makes Names that spread keys over a number of hash slots of a cluster, evenly over all
// nodes: 1 to 16384. 0 means 16384, the key's own slot: the hash tag is then the digest itself,
// `hg3:{digest}:state`. Otherwise there is one tag for each slot, `hg3:{tag}:digest:state`. The
// state is the number of the window and the family: a letter for the algorithm, and the period.
// With fewer slots, more decisions share a call.
func NewNames(slots int) (*Names, error) {
	if slots < 0 || slots > Slots {
		return nil, fmt.Errorf("script: %d hash slots: use 1 to %d, or 0 for all of them", slots, Slots)
	}
	n := &Names{}
	if slots == 0 || slots == Slots {
		return n, nil
	}
	n.tags, n.slots = make([]string, slots), make([]uint16, slots)
	wanted := make(map[uint16]int, slots)
	for i := range slots {
		slot := uint16(i * Slots / slots)
		n.slots[i], wanted[slot] = slot, i
	}
	// The numbers in base 36 meet every slot within some 200,000.
	for number := uint64(0); len(wanted) > 0; number++ {
		tag := strconv.FormatUint(number, 36)
		if i, ok := wanted[crc16(tag)%Slots]; ok {
			n.tags[i] = tag
			delete(wanted, n.slots[i])
		}
	}
	return n, nil
}

// Slot gives the hash slot of a place's keys.
func (n *Names) Slot(p Place) uint16 {
	if n.tags == nil {
		var digest [digestChars]byte
		base64.RawURLEncoding.Encode(digest[:], p[:digestBytes])
		return crc16(digest[:]) % Slots
	}
	return n.slots[n.tag(p)]
}

// digestChars is the length of a digest in base 64.
const digestChars = digestBytes / 3 * 4

// tag gives the number of a place's tag.
func (n *Names) tag(p Place) int {
	return int(binary.BigEndian.Uint64(p[:8]) % uint64(len(n.tags)))
}

// state identifies what one name stores: the count of the policies of one family in one place.
type state struct {
	place  Place
	family limit.Family
}

// letters are the algorithms in names.
const letters = "tlfgwb"

// appendState appends the name of a state.
func (n *Names) appendState(b []byte, s state) []byte {
	p := s.place
	b = append(b, Prefix+"{"...)
	if n.tags == nil {
		b = base64.RawURLEncoding.AppendEncode(b, p[:digestBytes])
		b = append(b, "}:"...)
	} else {
		b = append(b, n.tags[n.tag(p)]...)
		b = append(b, "}:"...)
		b = base64.RawURLEncoding.AppendEncode(b, p[:digestBytes])
		b = append(b, ':')
	}
	b = strconv.AppendUint(b, uint64(p[digestBytes]), 10)
	b = append(b, letters[s.family.Algorithm])
	switch per := s.family.Per; {
	case per == 0:
		return b
	case per%time.Microsecond == 0:
		return strconv.AppendInt(b, per.Microseconds(), 36)
	default:
		return strconv.AppendInt(append(b, '-'), int64(per), 36)
	}
}

// appendList appends the name of a long log's list. lua/log.lua knows the ending too.
func (n *Names) appendList(b []byte, s state) []byte { return append(n.appendState(b, s), ":l"...) }

// noteOf gives the name of the note that a receipt was returned.
func (n *Names) noteOf(s state, nonce uint64) string {
	return string(strconv.AppendUint(append(n.appendState(nil, s), ":r"...), nonce, 36))
}

// crc16 is CRC-16/XMODEM: the polynomial x^16 + x^12 + x^5 + 1, from 0. The specification of Redis
// Cluster uses it for hash slots.
func crc16[T string | []byte](text T) uint16 {
	crc := uint16(0)
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
