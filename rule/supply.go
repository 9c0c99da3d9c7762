package rule

// Supply is a set of bits. Each bit is a kind of key part that a front can give. Every front gives the path, the method, the host
// and the address.
type Supply uint8

const (
	// SupplyHeaders is for key parts header:NAME.
	SupplyHeaders Supply = 1 << iota
	// SupplyCookies is for key parts cookie:NAME.
	SupplyCookies
	// SupplySubjects is for key part mtls_subject.
	SupplySubjects
	// SupplyDescriptors is for key parts descriptor:NAME.
	SupplyDescriptors
	// SupplyQueries is for key parts query:NAME.
	SupplyQueries
	// SupplyBodies is for key parts model and json:FIELD, and for matches of bodies.
	SupplyBodies
)

// BeyondQueries reports whether the part is never in a query that has descriptors alone.
func (p Part) BeyondQueries() bool { return p.kind != partAll && p.kind != partDescriptor }
