package headgate

import "net/netip"

// Request is what is asked, by whom. A front fills it from its protocol; the
// guard and the rules read nothing else.
//
// What a client sent stands here as it came: rules bound and escape it.
type Request struct {
	// Method, Host and Path are as the service will see them: Host in lower case,
	// without port and brackets, Path decoded and cleaned.
	Method string
	Host   string
	Path   string
	// IP is the address of the peer that the connection came from.
	IP netip.Addr
	// Header and Cookie look values up by name; nil means that there are none.
	Header Values
	Cookie Values
	// Cost is in units. 0 counts as 1.
	Cost int64
}

// Values looks up what a client sent under a name. The first value counts.
type Values interface {
	Lookup(name string) (value string, ok bool)
}
