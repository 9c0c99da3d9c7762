package rule

// Needs says what rules ask of a request that a front or an Identity has to find
// out first. It is a set of bits; 0 needs nothing.
type Needs uint8

const (
	// NeedXFFIP: Request.XFFIP, for key part xff_ip.
	NeedXFFIP Needs = 1 << iota
	// NeedUserIP: Request.UserIP, for key part user_ip.
	NeedUserIP
	// NeedRegion: Request.Region, for key part region.
	NeedRegion
	// NeedSubject: Request.Subject, for key part mtls_subject. Only a front knows it.
	NeedSubject
	// NeedClaims: Request.Claims, for key parts jwt:CLAIM.
	NeedClaims
	// NeedIP: Request.IP, for the key parts that are addresses, and for region.
	NeedIP
	// NeedHost: Request.Host, for key part host and for matches by host.
	NeedHost
	// NeedPlainParameters: a front refuses paths with an escaped semicolon. Request.Path is
	// decoded, so that Folds would take the rest of the segment for a parameter.
	NeedPlainParameters
)

// needDerived are the needs that an Identity meets; the others are a front's.
const needDerived = NeedXFFIP | NeedUserIP | NeedRegion | NeedClaims

// Derived reports whether an Identity has to find something out.
func (n Needs) Derived() bool { return n&needDerived != 0 }

// Needs gives what the key and the match of the rule look at.
func (r *Rule) Needs() Needs {
	var needs Needs
	if len(r.Match.Hosts) > 0 {
		needs |= NeedHost
	}
	for _, p := range r.Key {
		needs |= p.Needs()
	}
	return needs
}

// Needs gives what the part looks at.
func (p Part) Needs() Needs {
	switch p.kind {
	case partIP:
		return NeedIP
	case partHost:
		return NeedHost
	case partXFFIP:
		return NeedXFFIP | NeedIP
	case partUserIP:
		return NeedUserIP | NeedIP
	case partRegion:
		return NeedRegion | NeedIP
	case partSubject:
		return NeedSubject
	case partClaim:
		return NeedClaims
	default:
		return 0
	}
}
