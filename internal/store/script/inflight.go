package script

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// MaxInFlight bounds the slots of one InFlightCall.
const MaxInFlight = 1000

// InFlightAction is what an InFlightCall does.
type InFlightAction string

// The actions of lua/in_flight.lua.
const (
	TakeSlot   InFlightAction = "take"
	PeekSlots  InFlightAction = "peek"
	RenewSlots InFlightAction = "renew"
	FreeSlots  InFlightAction = "free"
)

// InFlight gives the script for InFlightCall. Call InFlight once and keep the result.
func InFlight() Script { return assemble(luaBegin, luaInFlight) }

// InFlightCall gives the keys and arguments of InFlight for slots of one place: one slot to take, none to
// peek, or up to MaxInFlight slots to renew or free. A slot is known by its nonce. now and slack are those of
// Batch.Args.
func InFlightCall(names *Names, at Place, do InFlightAction, ttl time.Duration, limit int64, nonces []uint64, now headgate.Instant,
	slack time.Duration,
) (keys, args []string) {
	args = make([]string, 0, 5+len(nonces))
	args = append(args, timeOf(now), millis(slack), string(do), strconv.FormatInt(ttl.Microseconds(), 10), strconv.FormatInt(limit, 10))
	for _, nonce := range nonces {
		args = append(args, string(binary.BigEndian.AppendUint64(nil, nonce)))
	}
	return []string{names.slotsOf(at)}, args
}

// SlotTaken reads the result of a take or a peek: the number of slots that are taken now, and whether the call
// took one of them.
func SlotTaken(reply int64) (taken int64, mine bool) {
	if reply < 0 {
		return -1 - reply, false
	}
	return reply, true
}
