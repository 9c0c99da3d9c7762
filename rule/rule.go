package rule

// Rule says which requests a rule speaks for and under which key it counts them.
type Rule struct {
	// Name is unique among the rules; it is part of every key, so that rules never
	// share state. It has letters, digits, - _ and . and at most 64 of them.
	Name  string
	Match Match
	// Key is one to three parts; together they say who is counted.
	Key []Part
}

// Match says which requests a rule speaks for: all of the fields that are set must fit.
type Match struct {
	// Path is exact ("/v1/product"), a prefix ("/search/*", which is /search and all
	// below it), or empty or "/*" for every path. It is compared with the decoded path.
	Path string
	// Methods are compared as they are, and GET covers HEAD; empty is every method.
	Methods []string
	// Hosts are compared in lower case and without port; "*.example.com" is every
	// name below example.com. IPv6 addresses have no brackets in a request, and may
	// have them here. Empty is every host.
	Hosts []string
	// Headers must be there with the value, or with any value for "*". A header that
	// is there and empty counts as absent, as it does in keys. The names may be
	// spelled in any case; the values are compared as they are.
	Headers map[string]string
	// Descriptors are the entries that a decision server was asked with; each must be
	// there with the value, or with any value for "*". An entry that is there and
	// empty counts as absent. Names and values are compared as they are.
	Descriptors map[string]string
}
