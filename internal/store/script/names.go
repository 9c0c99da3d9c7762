package script

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate/limit"
)

// Slots is how many hash slots a Redis Cluster has.
const Slots = 16384

// Names names the keys of states. It is immutable, and safe for concurrent use.
//
// No character of a name is a client's: it is made of the digest, the window and the
// limit's algorithm and period.
type Names struct {
	// tags, if there are any, are the hash tags of the slots that are used.
	tags  []string
	slots []uint16
}

// NewNames makes Names that spread keys over so many hash slots of a cluster, evenly
// over all of its nodes: 1 to 16384. 0 is 16384, which is each key's own slot: there
// the hash tag is the digest itself, `hg3:{digest}:state`, and else one of as many
// tags as there are slots, `hg3:{tag}:digest:state`. The state is the number of the
// window and the family: a letter for the algorithm, and the period. Fewer slots let more decisions
// travel in one call.
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

// state is what one name stands for: what policies of one family count in one place.
type state struct {
	place  Place
	family limit.Family
}

// letters stand for the algorithms in names.
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

// appendList appends the name of the list that a long log has beside its state.
// lua/log.lua knows the ending too.
func (n *Names) appendList(b []byte, s state) []byte { return append(n.appendState(b, s), ":l"...) }

// noteOf gives the name of the note that a receipt was returned.
func (n *Names) noteOf(s state, nonce uint64) string {
	return string(strconv.AppendUint(append(n.appendState(nil, s), ":r"...), nonce, 36))
}

// crc16 is CRC-16/XMODEM: the polynomial x^16 + x^12 + x^5 + 1, from 0, as the
// specification of Redis Cluster has it for hash slots.
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
