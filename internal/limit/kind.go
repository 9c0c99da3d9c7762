package limit

import "github.com/headgate/headgate"

// CheckKind gives the error of an Op whose Kind does not exist, or whose algorithm does not
// support it: ErrUnknownKind, ErrNotBookable, ErrNotRefundable or ErrNotChargeable of package headgate.
func CheckKind(a headgate.Algorithm, kind headgate.OpKind) error {
	switch {
	case Accepts(a, kind):
		return nil
	case kind > headgate.Charge:
		return headgate.ErrUnknownKind
	case kind == headgate.Charge:
		return headgate.ErrNotChargeable
	case kind == headgate.Book:
		return headgate.ErrNotBookable
	default:
		return headgate.ErrNotRefundable
	}
}

// Accepts reports whether an algorithm supports a Kind.
func Accepts(a headgate.Algorithm, kind headgate.OpKind) bool {
	switch kind {
	case headgate.Take, headgate.Peek, headgate.TakeIfAll, headgate.TakeNow:
		return true
	case headgate.Book:
		return isBucket(a)
	case headgate.Refund:
		return a != headgate.LeakyBucket && a != headgate.Ban
	case headgate.Charge:
		return a != headgate.Ban
	default:
		return false
	}
}

// Corrects reports whether a Kind changes what is counted without deciding a request: a Refund
// or a Charge.
func Corrects(kind headgate.OpKind) bool { return kind == headgate.Refund || kind == headgate.Charge }

// CheckGroup gives headgate.ErrBadGroup if the Ops cannot be one group: a Refund or a Charge with
// other Ops, or TakeIfAll with another Kind.
func CheckGroup(ops []headgate.Op) error {
	for i := 1; i < len(ops); i++ {
		if ops[0].Kind != ops[i].Kind && (alone(ops[0].Kind) || alone(ops[i].Kind)) || Corrects(ops[i].Kind) {
			return headgate.ErrBadGroup
		}
	}
	return nil
}

// alone reports whether a Kind never shares a group with another Kind.
func alone(kind headgate.OpKind) bool { return Corrects(kind) || kind == headgate.TakeIfAll }
