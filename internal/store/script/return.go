package script

import (
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// ReturnCall gives the keys and arguments of GiveBack for a receipt of a policy. Both are empty if
// there is nothing to return. now and slack are those of Batch.Args.
func ReturnCall(names *Names, p *Plan, r *headgate.Receipt, now headgate.Instant, slack time.Duration) (keys, args []string) {
	if r.Empty() || r.Units() <= 0 || r.Cost > p.room || p.blocks || p.policy.Algorithm == headgate.Ban {
		return nil, nil
	}
	at := state{PlaceIn(r.Place), p.family}
	keys = []string{string(names.appendState(nil, at)), names.noteOf(at, r.Nonce)}
	if hasList(p.family) {
		keys = append(keys, string(names.appendList(nil, at)))
	}
	from := span{int64(r.From) / int64(time.Microsecond), partIn(r)}
	if r.Kept > 0 && p.isBucket() {
		from = from.add(p.spanOf(r.Kept), p.den) // The kept units are the first.
	}
	return keys, []string{timeOf(now), millis(slack), p.packed, packed(r.Units(), from.us, from.part, int64(versionIn(r)))}
}

// UndoCall is like ReturnCall, for a take of a group that is refused by a limit of another server.
// If the take is still the last one of a bucket, the bucket is as if it had never been made.
func UndoCall(names *Names, p *Plan, r *headgate.Receipt, now headgate.Instant, slack time.Duration) (keys, args []string) {
	keys, args = ReturnCall(names, p, r, now, slack)
	if len(keys) > 0 && p.isBucket() {
		args = append(args, "undo")
	}
	return keys, args
}

// ReturnLastCall is like ReturnCall, but returns only the last booking of a bucket. The script gives 1
// if it has returned the booking.
func ReturnLastCall(names *Names, p *Plan, r *headgate.Receipt, now headgate.Instant, slack time.Duration) (keys, args []string) {
	if !p.isBucket() {
		return nil, nil
	}
	keys, args = ReturnCall(names, p, r, now, slack)
	if len(keys) > 0 {
		args = append(args, "last")
	}
	return keys, args
}

// ForgetCall gives the keys and arguments of Forget for the states of the given families in a place.
// All keys are in one slot.
func ForgetCall(names *Names, at Place, families []limit.Family) (keys, args []string) {
	var lists []string
	for _, f := range families {
		s := state{at, f}
		keys = append(keys, string(names.appendState(nil, s)))
		if hasList(f) {
			lists = append(lists, string(names.appendList(nil, s)))
		}
	}
	return append(keys, lists...), []string{"", "0", strconv.Itoa(len(keys))}
}
