package guard

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// DecisionField is the header field that names the instance and the decision of a refusal, in canonical spelling.
const DecisionField = "Headgate-Decision"

// DecisionID names one decision in logs and towards its client. It is random, so it tells a client nothing about other decisions.
type DecisionID uint64

// DecisionID returns the name of the decision. It is made at the first call, and stays until the next Decide of the answer, so
// that all who name the decision use the same one.
func (a *Answer) DecisionID() DecisionID {
	for a.id == 0 { // 0 stands for a decision without a name.
		a.id = DecisionID(rand.Uint64())
	}
	return a.id
}

// Named reports whether DecisionID was called since the last Decide.
func (a *Answer) Named() bool { return a.id != 0 }

// AppendTo appends the instance, a slash and the ID as 16 hexadecimal digits: the value of the field Headgate-Decision. Without an
// instance, it appends the digits alone.
func (id DecisionID) AppendTo(dst []byte, instance string) []byte {
	if instance != "" {
		dst = append(append(dst, instance...), '/')
	}
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(id))
	return hex.AppendEncode(dst, number[:])
}
