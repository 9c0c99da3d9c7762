package config

import "strings"

// records reads the name of SRV records from begin to end.
func (t *storeText) records(begin, end int) *addressFault {
	written := t.text[begin:end]
	name := strings.ToLower(strings.TrimSuffix(written, "."))
	switch {
	case name == "":
		return t.fault(begin, "has no name of SRV records")
	case strings.ContainsAny(name, ":,"):
		return t.fault(begin, "has a port or several names, and SRV records have both")
	case !isHostName(written):
		return t.fault(begin, "has an invalid name of SRV records")
	}
	t.store.Addresses = []string{name}
	return nil
}

// SRV returns the name of the SRV records that list the servers of a store in Memcached, or "" for a store
// with addresses.
func (s *SharedStore) SRV() string {
	if s.Kind == KindMemcached && len(s.Addresses) == 1 && !strings.Contains(s.Addresses[0], ":") {
		return s.Addresses[0]
	}
	return ""
}
