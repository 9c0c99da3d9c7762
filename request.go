package headgate

import "net/netip"

// Request is a request of a client. A front fills it from its protocol. The guard and
// the rules read only this type.
//
// Values from the client are unchanged here: rules limit their length and escape them.
type Request struct {
	// Method, Host and Path are the values that the service will see. Host is in lower
	// case, without port and brackets. Path is decoded and cleaned.
	Method string
	Host   string
	Path   string
	// IP is the address of the peer of the connection. IP is invalid when the peer has
	// no address, for example on a Unix socket.
	IP netip.Addr
	// Header and Cookie look up values by name. nil means that the request has none.
	Header Values
	Cookie Values
	// Query looks up decoded values of the query of the URL by their decoded names. nil means that the request has none.
	Query Values
	// Body has what rules read of the body; nil if no rule that may match reads it, or if there is none.
	Body *Body
	// Domain is the domain of a request to a decision server. Descriptors are its entries, in
	// their order. Other protocols leave both out.
	Domain      string
	Descriptors Descriptors
	// Subject is the subject of the verified TLS client certificate, in the form of
	// RFC 2253. Subject is empty without such a certificate.
	Subject string
	// Cost is in units. With the Kind Take, 0 means unspecified: the rules then set the cost.
	Cost int64
	// Length is the length of the body that the request announces, in bytes. It is 0 without a body or if the length is not known.
	Length int64
	// Kind is what the request does with its limits, and Sent is a limit that replaces the one of
	// its domain's tree. Only requests to a decision server have them: see
	// guard.DecideDescriptors.
	Kind OpKind
	// NoWait says that the client cannot wait: a request that would have to wait is refused, and takes nothing.
	NoWait bool
	// Preflight says that the request is a preflight of CORS, which only rules that name its method count, and those with
	// requests in flight alone.
	Preflight bool
	// Peek decides the request by the rules, and takes nothing. The request is not reported, and does not count for a ban. A request
	// that would have to wait is refused. Fair share and stages do not decide it. The Kind is Take.
	Peek bool
	Sent Limit
	// Permitted reports whether the request may match a rule of a name; nil permits all. A decision
	// server sets it for a caller that may use some rules only: see guard.PermitError.
	Permitted func(rule string) bool
	// ID is the id of the request, and Authority its host as the client sent it. Only logs show them: no rule reads them.
	ID, Authority string

	// A rule.Identity derives the following fields from the fields above, if a rule
	// reads them.

	// XFFIP is the client address from X-Forwarded-For. UserIP is the client address
	// from a user-IP header. Both equal IP when the header is not trusted.
	XFFIP, UserIP netip.Addr
	// ClientIP is the address with which networks of a match are compared. It is invalid when a trusted peer names no single client.
	ClientIP netip.Addr
	// Region is the client's ISO 3166 region ("NL"). Region is empty when unknown.
	Region string
	// Claims are the claims of the verified token. nil means that no token was verified.
	Claims Values
}

// Body is what rules read of the body of a request, which is JSON.
type Body struct {
	// Fields looks up strings, numbers and booleans by their paths, such as params.name, as the rules name them.
	Fields Values
	// Part says that the body is longer than what was read: fields behind that are missing.
	Part bool
	// Text is the number of bytes of text, and Images that of images and files. Output is the most tokens that the answer may have, and
	// Answers the number of answers that the request asks for; each is 0 if the body does not say so.
	Text, Images, Output, Answers int64
}

// DescriptorEntry is one entry of Descriptors.
type DescriptorEntry struct{ Name, Value string }

// Descriptors are entries in the order of the request. Names may repeat.
type Descriptors []DescriptorEntry

// Lookup returns the value of the first entry with the name.
func (d Descriptors) Lookup(name string) (value string, ok bool) {
	for i := range d {
		if d[i].Name == name {
			return d[i].Value, true
		}
	}
	return "", false
}

// Values looks up the values that a client sent. Lookup returns the first value of a
// name.
type Values interface {
	Lookup(name string) (value string, ok bool)
}

// Lines is an optional interface of Values for fields to which proxies add lines.
// Lines returns all values of a name, in their order. The caller must not change them.
type Lines interface {
	Lines(name string) []string
}
