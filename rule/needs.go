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
)

// Needs gives what the key of the rule is made of.
func (r *Rule) Needs() Needs {
	var needs Needs
	for _, p := range r.Key {
		switch p.kind {
		case partXFFIP:
			needs |= NeedXFFIP
		case partUserIP:
			needs |= NeedUserIP
		case partRegion:
			needs |= NeedRegion
		case partSubject:
			needs |= NeedSubject
		case partClaim:
			needs |= NeedClaims
		default:
		}
	}
	return needs
}
