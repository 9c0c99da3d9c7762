package script

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Slots is the number of hash slots of a Redis Cluster.
const Slots = 16384

// Names gives the names of keys in Redis. Names is immutable, and safe for concurrent use.
//
// A name has only the digest of a key, the window, and the limit's algorithm and period. So clients
// cannot choose any character of a name.
type Names struct {
	// tags are the hash tags of the used slots; nil means that all slots are used.
	tags  []string
	slots []uint16
}

// NewNames makes Names that spread keys evenly over the given number of hash slots of a cluster, from
// 1 to 16384. 0 means 16384. With 16384 slots, the hash tag is the digest: `hg3:{digest}:state`. With
// fewer slots, each slot has one tag: `hg3:{tag}:digest:state`. The state is the number of the window,
// a letter for the algorithm, and the period. With fewer slots, more decisions share a call.
func NewNames(slots int) (*Names, error) {
	if slots < 0 || slots > Slots {
		return nil, fmt.Errorf("script: invalid number of hash slots %d: use 1 to %d, or 0 for all slots", slots, Slots)
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
	// About 200,000 numbers in base 36 are enough to find a tag for every slot.
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

// tag gives the index of a place's hash tag.
func (n *Names) tag(p Place) int {
	return int(binary.BigEndian.Uint64(p[:8]) % uint64(len(n.tags)))
}

// state identifies one stored state: the units of the policies of one family in one place.
type state struct {
	place  Place
	family limit.Family
}

// letters has the letter of each algorithm in names, in the order of headgate.Algorithm. Windows of
// the calendar have the letter e, and that of their unit. c was the letter of their form without
// ended counts.
const letters = "tlfgwb"

// appendState appends the name of a state.
func (n *Names) appendState(b []byte, s state) []byte {
	b = strconv.AppendUint(n.appendPlace(b, s.place), uint64(s.place[digestBytes]), 10)
	if unit := s.family.Calendar; unit != headgate.NoCalendar {
		return append(b, 'e', unit.String()[0])
	}
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

// appendPlace appends the beginning of the names of a place, without the number of its window.
func (n *Names) appendPlace(b []byte, p Place) []byte {
	b = append(b, Prefix+"{"...)
	if n.tags == nil {
		return append(base64.RawURLEncoding.AppendEncode(b, p[:digestBytes]), "}:"...)
	}
	b = append(b, n.tags[n.tag(p)]...)
	b = append(b, "}:"...)
	return append(base64.RawURLEncoding.AppendEncode(b, p[:digestBytes]), ':')
}

// appendList appends the name of a long log's list. lua/log.lua uses the same suffix.
func (n *Names) appendList(b []byte, s state) []byte { return append(n.appendState(b, s), ":l"...) }

// slotsOf gives the name of the slots of requests in flight in a place.
func (n *Names) slotsOf(p Place) string {
	return string(append(strconv.AppendUint(n.appendPlace(nil, p), uint64(p[digestBytes]), 10), 's'))
}

// noteOf gives the name of the note that a receipt was returned.
func (n *Names) noteOf(s state, nonce uint64) string {
	return string(strconv.AppendUint(append(n.appendState(nil, s), ":r"...), nonce, 36))
}

// crc16 computes CRC-16/XMODEM, with the polynomial x^16 + x^12 + x^5 + 1 and the initial value 0. The
// specification of Redis Cluster defines hash slots by this checksum.
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
