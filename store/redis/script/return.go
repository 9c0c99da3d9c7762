package script

import (
	"time"

	"github.com/headgate/headgate"
)

// ReturnCall gives keys and arguments of GiveBack for a receipt that was taken under
// plan; they are none if there is nothing to return. now and slack are as for Batch.Args.
func ReturnCall(names *Names, p *Plan, r *headgate.Receipt, now headgate.Instant, slack time.Duration) (keys, args []string) {
	if r.Empty() || r.Cost <= 0 || r.Cost > p.room || p.blocks || p.policy.Algorithm == headgate.Ban {
		return nil, nil
	}
	at := PlaceIn(r.Place)
	state := string(names.appendState(nil, at))
	keys = []string{state, names.noteOf(at, r.Nonce)}
	if p.policy.Algorithm == headgate.SlidingLog {
		keys = append(keys, string(names.appendList(nil, at)))
	}
	from := int64(r.From) / int64(time.Microsecond)
	return keys, []string{timeOf(now), millis(slack), p.packed, packed(r.Cost, from, partIn(r), int64(versionIn(r)))}
}

// ReturnLastCall is ReturnCall that gives back nothing but the last booking of a bucket.
// The script gives 1 if it did.
func ReturnLastCall(names *Names, p *Plan, r *headgate.Receipt, now headgate.Instant, slack time.Duration) (keys, args []string) {
	if p.policy.Algorithm > headgate.LeakyBucket {
		return nil, nil
	}
	keys, args = ReturnCall(names, p, r, now, slack)
	if len(keys) > 0 {
		args = append(args, "last")
	}
	return keys, args
}

// ForgetCall gives keys and arguments of Forget for a place.
func ForgetCall(names *Names, at Place) (keys, args []string) {
	return []string{string(names.appendState(nil, at)), string(names.appendList(nil, at))}, []string{"", "0"}
}
