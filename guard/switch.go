package guard

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/headgate/headgate"
)

// Switch is a change of a rule's Mode for some time, on top of a configuration. Mode is then the mode of the switch.
type Switch struct {
	// From is the Mode without the switch.
	From Mode
	// Percent is the part of the keys, 1 to 99, that Mode Enforce applies to. The other keys are in shadow. 0 means all keys. InShare
	// says which keys these are.
	Percent int
	// KeepBans keeps one state of bans for both modes, so that a ban that began in shadow is enforced after a switch to Enforce. Without
	// it, decisions in another mode than From have attempts and bans of their own.
	KeepBans bool
}

// InShare reports whether a key belongs to the first percent of all keys. values are the parts of the key, without the name of the rule,
// so rules with one key choose the same clients. The choice depends on nothing else: it is the same in all instances, and a
// higher percentage adds keys and removes none. The hash is SHA-256, whose first eight bytes, as a big-endian number modulo 100, are below
// percent.
func InShare(values []byte, percent int) bool {
	sum := sha256.Sum256(values)
	return binary.BigEndian.Uint64(sum[:8])%100 < uint64(percent)
}

// check finds a Switch that cannot be.
func (s *Switch) check(r *Rule) error {
	switch {
	case s == nil:
	case s.Percent < 0 || s.Percent > 99 || s.From > Off:
		return fmt.Errorf("Switch has Percent %d and From %d: use 0 to 99, and the constants of Mode", s.Percent, s.From)
	case s.Percent > 0 && r.Mode != Enforce:
		return fmt.Errorf("Switch has Percent %d in mode %s: use it with enforce", s.Percent, r.Mode)
	}
	return nil
}

// bansApart reports whether the rule has bans of its own in its mode.
func (r *Rule) bansApart() bool {
	return r.Switch != nil && !r.Switch.KeepBans && r.Mode != r.Switch.From
}

// sharePart is the rule for the keys that a Switch leaves in shadow.
type sharePart struct {
	percent int
	shadow  *prepared
	skipped int // the length of the namespace and the name at the begin of a key without a quota
}

// prepareSwitched prepares a rule with its Switch.
func (g *Guard) prepareSwitched(c *Config, r *Rule, number int, claimed *claims) (prepared, error) {
	p, err := g.prepareRule(c, r, number, claimed)
	if err == nil {
		err = g.prepareSharePart(c, &p, claimed)
	}
	return p, err
}

// prepareSharePart prepares the shadow rule of a Switch with a Percent. Both have the same limits, so their counters are the same.
func (g *Guard) prepareSharePart(c *Config, p *prepared, claimed *claims) error {
	if p.Switch == nil || p.Switch.Percent == 0 {
		return nil
	}
	shadow := *p.Rule
	shadow.Mode, shadow.Switch = Shadow, &Switch{From: p.Switch.From, KeepBans: p.Switch.KeepBans}
	twin, err := g.prepareRule(c, &shadow, p.number, claimed)
	if err != nil {
		return err
	}
	var length [binary.MaxVarintLen64]byte
	p.part = &sharePart{p.Switch.Percent, &twin, len(p.space) + binary.PutUvarint(length[:], uint64(len(p.Name))) + len(p.Name)}
	return nil
}

// of gives the rule for a request: the enforced one, or that in shadow.
func (s *sharePart) of(p *prepared, req *headgate.Request, a *Answer) *prepared {
	from := len(a.keys)
	key, values := a.keys, from+s.skipped
	if p.Quota != "" {
		key, values, _ = p.AppendCustomerKey(append(key, p.space...), req)
	} else {
		key, _ = p.AppendKey(append(key, p.space...), req)
	}
	a.keys = key[:from]
	if InShare(key[values:], s.percent) {
		return p
	}
	return s.shadow
}
