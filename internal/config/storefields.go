package config

import (
	"fmt"

	"github.com/headgate/headgate/internal/config/field"
)

// sharedFields reads the settings that only shared stores have. second is the store for limits of one
// second, or nil.
func (s *section) sharedFields(shared, second *SharedStore) {
	into, into2 := orUnused(shared), orUnused(second)
	s.file(s.declare("store_password_file", field.Restart, "File with the password of Redis, instead of a password in the address."),
		&into.PasswordFile)
	s.sentinels(into)
	s.file(s.declare(perSecondPasswordName, field.Restart, "The same as store_password_file, for store_per_second."),
		&into2.PasswordFile)
	tls := s.storeTLS(&into.Files)
	slots := int64(into.Slots)
	s.number(s.declare("redis_slots", field.Refused, "Number of hash slots of a Redis Cluster over which keys are spread."),
		&slots, 1, redisSlots)
	into.Slots = int(slots)
	s.duration(s.declare(dialTimeoutName, field.Restart, "Time limit for opening a connection to Redis."), &into.DialTimeout,
		leastTimeout, mostTimeout)
	s.boolean(s.declare("memcached_counters", field.Refused, "true lets Memcached count a fixed_window in one atomic step. It then "+
		"loses more counts when limits change."), &into.Counters)
	s.refresh(into)
	s.duration(s.declare("deny_cache", field.Restart, "How long a key over its limit is refused without a query to "+
		"the shared store. With 0, every request queries the store."), &into.DenyCache, 0, mostDenyCache)
	breaker := s.breaker(&into.Breaker)
	if !s.counting.known {
		return
	}
	if shared == nil {
		s.unusedFields(memoryWord, "", perSecondName, perSecondPasswordName, "store_password_file", sentinelUserName,
			sentinelPasswordName, sentinelPasswordFileName, "redis_slots", dialTimeoutName, "memcached_counters", refreshName, "deny_cache")
		s.unusedSection(tls, memoryWord, "")
		s.unusedSection(breaker, memoryWord, "")
		return
	}
	s.checkShared(into, second, tls)
	switch {
	case second != nil:
		s.perSecond(into, second)
	case !s.blamed(perSecondName):
		if v, ok := s.given(perSecondPasswordName); ok {
			s.fault(v, "has no effect without "+perSecondName, "remove it, or set "+perSecondName)
		}
	}
}

// refresh reads the interval in which SRV records are resolved. A very short one would query DNS without
// a break.
func (s *section) refresh(into *SharedStore) {
	s.duration(s.declare(refreshName, field.Restart, "Interval in which the SRV records of memcached+srv:// are resolved again: at "+
		"least 1s. 0 resolves them once."), &into.Refresh, 0, mostRefresh)
	if v, ok := s.given(refreshName); ok && !s.blamed(v.path) && into.Refresh > 0 && into.Refresh < leastRefresh {
		s.fault(v, field.FormatDuration(into.Refresh)+" is too short", "use 0, or 1s to 1d")
	}
}

// orUnused gives the store, or one that takes settings without effect.
func orUnused(s *SharedStore) *SharedStore {
	if s == nil {
		unused := defaultShared()
		return &unused
	}
	return s
}

// storeTLS reads the files for TLS to a store.
func (s *section) storeTLS(t *StoreTLS) *section {
	tls := s.sub(s.declare("store_tls", field.Restart, "Settings of TLS to a store of rediss:// or memcacheds://."), "{ca: ca.crt}")
	tls.file(tls.declare("ca", field.Restart, "PEM file of authorities that replace those of the system."), &t.CA)
	tls.declare("cert", field.Restart, "PEM file of the client certificate for the store.")
	tls.declare("key", field.Restart, "PEM file of that certificate's key.")
	tls.pair(&t.Cert, &t.Key)
	tls.declare("server_name", field.Restart, "Name in the servers' certificates. Default: the host of each server.")
	tls.serverName("server_name", &t.ServerName)
	tls.boolean(tls.declare("skip_hostname_verification", field.Restart, "true accepts a certificate of the authorities with any name."),
		&t.SkipName)
	tls.end()
	tls.checkPair(t.Cert, t.Key)
	if v, ok := tls.given("server_name"); ok && t.SkipName {
		s.fault(v, "has no effect with skip_hostname_verification", "remove one of them")
	}
	return tls
}

// breaker reads when a server counts as unreachable.
func (s *section) breaker(b *Breaker) *section {
	breaker := s.sub(s.declare("breaker", field.Restart, "When a server of a shared store counts as unreachable, and when it is probed."),
		"{failures: 5, probe: 100ms, max_probe: 2s}")
	failures := int64(b.Failures)
	breaker.number(breaker.declare("failures", field.Restart, "Consecutive failed calls after which the server counts as unreachable."),
		&failures, 1, mostFailures)
	b.Failures = int(failures)
	breaker.duration(breaker.declare("probe", field.Restart, "Wait before the first probe, doubled after each failure; 1ms to "+
		"10m."), &b.Probe, leastTimeout, mostProbe)
	breaker.duration(breaker.declare("max_probe", field.Restart, "Longest wait between probes; 1ms to 10m."),
		&b.MaxProbe, leastTimeout, mostProbe)
	breaker.end()
	if b.Probe <= b.MaxProbe || breaker.blamedAny("probe", "max_probe") {
		return breaker
	}
	for _, name := range []string{"max_probe", "probe"} {
		if v, ok := breaker.given(name); ok {
			s.fault(v, fmt.Sprintf("probe of %s is above max_probe of %s", field.FormatDuration(b.Probe), field.FormatDuration(b.MaxProbe)),
				"raise max_probe to at least that of probe")
			break
		}
	}
	return breaker
}

// checkShared finds settings that neither store uses, and credentials that conflict. second may be nil.
func (s *section) checkShared(into, second *SharedStore, tls *section) {
	scheme := into.scheme()
	is := func(kind StoreKind) bool { return into.Kind == kind || second != nil && second.Kind == kind }
	if into.Kind == KindMemcached {
		s.unusedFields(scheme, "", "store_password_file", dialTimeoutName)
	}
	if into.Kind != KindMemcached {
		s.unusedFields(scheme, string(KindMemcached), "memcached_counters", refreshName)
	} else if into.SRV() == "" {
		s.unusedFields(scheme, "memcached+srv", refreshName)
	}
	if !is(KindRedisSentinel) {
		s.unusedFields(scheme, "redis+sentinel", sentinelUserName, sentinelPasswordName, sentinelPasswordFileName)
	}
	if !is(KindRedisCluster) {
		s.unusedFields(scheme, "redis+cluster", "redis_slots")
	}
	if !into.TLS && (second == nil || !second.TLS) {
		s.unusedSection(tls, scheme, (&SharedStore{Kind: into.Kind, TLS: true}).scheme())
	}
	s.credentials("store", "store_password_file", into)
	s.checkSentinels(into)
}

// written is like given, but returns the value and not the field's name.
func (s *section) written(name string) (value, bool) {
	v, ok := s.given(name)
	if ok && v.variable == "" {
		v = s.find(s.pathOf(name))
	}
	return v, ok
}

// unusedFields notes the given fields that are set. with is a scheme that uses them.
func (s *section) unusedFields(scheme, with string, names ...string) {
	for _, name := range names {
		if v, ok := s.given(name); ok && !s.blamed(v.path) {
			s.fault(v, "has no effect with store "+scheme, unusedFix(scheme, with))
		}
	}
}

// unusedSection notes a section that the file or a variable sets.
func (s *section) unusedSection(sub *section, scheme, with string) {
	s.unused(sub, "has no effect with store "+scheme, unusedFix(scheme, with))
}

func unusedFix(scheme, with string) string {
	switch {
	case scheme == memoryWord:
		return "remove it, or use a shared store, like redis://127.0.0.1:6379/0"
	case with == "" || with == scheme:
		return "remove it"
	default:
		return "remove it, or use " + with + "://"
	}
}
