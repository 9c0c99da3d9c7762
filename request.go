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
	// IP is the address of the peer that the connection came from. It is not valid
	// where peers have none, as on a unix socket.
	IP netip.Addr
	// Header and Cookie look values up by name; nil means that there are none.
	Header Values
	Cookie Values
	// Descriptors are the entries that a decision server was asked with, in their order; nil
	// elsewhere.
	Descriptors Descriptors
	// Subject is the subject of the client certificate that TLS has verified, as in
	// RFC 2253; "" is none.
	Subject string
	// Cost is in units. 0 is unstated: the rules say what the request costs.
	Cost int64

	// What follows is derived from the above by a rule.Identity, as far as a rule
	// asks for it.

	// XFFIP is the sender by X-Forwarded-For, and UserIP the one by a user-IP header;
	// both are IP where those cannot be believed.
	XFFIP, UserIP netip.Addr
	// Region is where the sender is, as in ISO 3166 ("NL"); "" is unknown.
	Region string
	// Claims are those of the request's verified token; nil when there is none.
	Claims Values
}

// DescriptorEntry is one of Descriptors.
type DescriptorEntry struct{ Name, Value string }

// Descriptors are entries in the order in which they were asked, whose names may repeat.
type Descriptors []DescriptorEntry

// Lookup gives the value of the first entry of a name.
func (d Descriptors) Lookup(name string) (value string, ok bool) {
	for i := range d {
		if d[i].Name == name {
			return d[i].Value, true
		}
	}
	return "", false
}

// Values looks up what a client sent under a name. The first value counts.
type Values interface {
	Lookup(name string) (value string, ok bool)
}

// Lines is what Values may offer too: all values of a name, in their order, for
// fields that proxies add lines to. The caller does not change them.
type Lines interface {
	Lines(name string) []string
}
