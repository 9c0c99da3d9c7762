package limit

import "github.com/headgate/headgate"

// CheckKind gives the error of an Op whose Kind does not exist, or whose algorithm does not
// support it: ErrUnknownKind, ErrNotBookable or ErrNotRefundable of package headgate.
func CheckKind(a headgate.Algorithm, kind headgate.OpKind) error {
	switch {
	case Accepts(a, kind):
		return nil
	case kind > headgate.TakeNow:
		return headgate.ErrUnknownKind
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
	default:
		return false
	}
}

// CheckGroup gives headgate.ErrBadGroup if the Ops cannot be one group: a Refund with other
// Ops, or TakeIfAll with another Kind.
func CheckGroup(ops []headgate.Op) error {
	for i := 1; i < len(ops); i++ {
		if ops[0].Kind != ops[i].Kind && (alone(ops[0].Kind) || alone(ops[i].Kind)) || ops[i].Kind == headgate.Refund {
			return headgate.ErrBadGroup
		}
	}
	return nil
}

// alone reports whether a Kind never shares a group with another Kind.
func alone(kind headgate.OpKind) bool { return kind == headgate.Refund || kind == headgate.TakeIfAll }
