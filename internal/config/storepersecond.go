package config

import (
	"strings"

	"github.com/headgate/headgate/internal/config/field"
)

const (
	perSecondName         = "store_per_second"
	perSecondPasswordName = "store_per_second_password_file"
)

// perSecondAddress reads the address of the store for limits of one second. It returns nil if there is
// none.
func (s *section) perSecondAddress() *SharedStore {
	s.declare(perSecondName, field.Refused, "A second store in Redis, for all limits with a period of one second. All other limits "+
		"and bans stay in store. A request with limits in both queries both at once.")
	s.outline.field(perSecondName).written("", perSecondPattern)
	v, ok := s.scalar(perSecondName, "an address")
	if !ok {
		return nil
	}
	if strings.ContainsAny(v.text(), "@?") {
		s.hide(v)
	}
	const fix = "use an address of Redis, like redis://127.0.0.1:6379/0"
	second, bad := parseStore(v.text())
	switch {
	case bad != nil && strings.Contains(bad.fix, memoryWord):
		s.faultAt(v, bad.offset, bad.problem, fix)
	case bad != nil:
		s.faultAt(v, bad.offset, bad.problem, bad.fix)
	case second.Kind == KindMemcached:
		s.fault(v, "is a store in Memcached", fix)
	default:
		return second
	}
	return nil
}

// perSecond checks the store for limits of one second, gives it the settings of the other store, and adds it
// to that store.
func (s *section) perSecond(into, second *SharedStore) {
	v, _ := s.written(perSecondName)
	if into.Kind == KindMemcached {
		s.fault(v, "has no effect with store "+into.scheme(), "remove it, or use redis:// for store")
		return
	}
	s.credentials(perSecondName, perSecondPasswordName, second)
	second.SentinelUser, second.SentinelPassword = into.SentinelUser, into.SentinelPassword
	second.SentinelPasswordFile, second.Files, second.Slots = into.SentinelPasswordFile, into.Files, into.Slots
	second.DialTimeout, second.DenyCache, second.Breaker = into.DialTimeout, into.DenyCache, into.Breaker
	if second.SamePlace(into) {
		s.fault(v, "is the same as store", "remove it, or use another server or database")
		return
	}
	into.PerSecond = second
}

// credentials finds credentials that conflict. name is the field of the address, and file that of the
// password file.
func (s *section) credentials(name, file string, store *SharedStore) {
	if v, ok := s.given(file); ok && store.Password != "" {
		s.fault(v, "has no effect with a password in the address of "+name, "remove one of them")
	}
	if v, ok := s.written(name); ok && store.User != "" && store.Password == "" && store.PasswordFile == "" {
		s.hide(v)
		s.fault(v, "has a user without a password", "write user:password@, or :password@ for the default user, or set "+file+
			"; for a user with nopass, write any password, like user:none@")
	}
}
