package rule

// Needs is a set of bits. Each bit is a value that rules read and that a front or an
// Identity must find first. 0 means no value.
type Needs uint16

const (
	// NeedXFFIP is Request.XFFIP, for key part xff_ip.
	NeedXFFIP Needs = 1 << iota
	// NeedUserIP is Request.UserIP, for key part user_ip.
	NeedUserIP
	// NeedRegion is Request.Region, for key part region.
	NeedRegion
	// NeedSubject is Request.Subject, for key part mtls_subject. Only a front can set it.
	NeedSubject
	// NeedClaims is Request.Claims, for key parts jwt:CLAIM.
	NeedClaims
	// NeedIP is Request.IP, for key parts with an address, and for region.
	NeedIP
	// NeedHost is Request.Host, for key part host and for matches by host.
	NeedHost
	// NeedPlainParameters means that a front refuses paths with an escaped semicolon.
	// Request.Path is decoded, so Folds would treat the text after the semicolon as a
	// parameter.
	NeedPlainParameters
	// NeedClientIP is Request.ClientIP, for matches by addresses.
	NeedClientIP
)

// needDerived are the needs that an Identity fills. A front fills the others.
const needDerived = NeedXFFIP | NeedUserIP | NeedRegion | NeedClaims | NeedClientIP

// Derived reports whether an Identity has to fill a need.
func (n Needs) Derived() bool { return n&needDerived != 0 }

// Needs returns the values that the key and the match of the rule read.
func (r *Rule) Needs() Needs {
	var needs Needs
	for m := range r.matches {
		if len(m.Hosts) > 0 {
			needs |= NeedHost
		}
		if len(m.Addresses) > 0 {
			needs |= NeedIP | NeedClientIP
		}
	}
	for _, p := range r.Key {
		needs |= p.Needs()
	}
	return needs
}
