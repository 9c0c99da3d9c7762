package rule

import "net/netip"

// Rule says which requests match and under which key they count.
type Rule struct {
	// Name is unique among the rules. Name is part of every key, so that rules never share
	// state. Name has 1 to 64 letters, digits, -, _ and dots.
	Name  string
	Match Match
	// Exempt leaves out the requests that match one of its entries.
	Exempt []Match
	// Key has one to three parts. Requests with equal values of all parts count together.
	Key []Part
	// Missing says what happens to a request that lacks a part of the key.
	Missing Missing
	// Quota names the quota that the rule counts. Key then has one part, whose value names the
	// customer. Rules with one quota share one key for each customer: see AppendKey.
	Quota string
}

// Match says which requests match a rule: all fields that are set must match.
type Match struct {
	// Path is an exact path ("/v1/product"), a prefix ("/search/*" matches /search and all paths below it), or a template
	// ("/users/{id}"). An empty Path and "/*" match every path. Match compares Path with the decoded path.
	//
	// docs/reference/patterns.md defines the patterns of all fields: *, **, {name}, {name...} and re:EXPRESSION. A text behind = is
	// taken as written: "=/users/{id}", "=free*". A text that looks like a pattern of another language is an error.
	Path string
	// Methods are case-sensitive, and GET includes HEAD. An empty list matches every method. A method that is not known is
	// written like "=BREW": see ParseMethod.
	Methods []string
	// Hosts are compared in lower case and without port. "*.example.com" matches every
	// name below example.com. IPv6 addresses may have brackets here. An empty list matches
	// every host.
	Hosts []string
	// Headers must be present with the value, or with any value for "*". An empty header
	// counts as missing, as in keys. Names are case-insensitive, and values are not.
	Headers map[string]string
	// Query has values of the query of the URL. Each must be present with the value, or with any value for "*". An empty value counts as
	// missing. Names are compared exactly, and both are decoded: see Query of headgate.Request.
	Query map[string]string
	// Addresses are networks, one of which must have the client's address: Request.ClientIP, which an Identity finds.
	Addresses []netip.Prefix
	// Domain is the domain of a request to a decision server. Rules that
	// name neither a domain nor descriptors match no such request.
	Domain string
	// Descriptors are entries of a request to a decision server. Each entry must be
	// present with the value, or with any value for "*". An empty entry counts as missing.
	// Names are compared exactly.
	Descriptors map[string]string
	// Model is the model that the body of the request names, or its path. JSON are strings, numbers and booleans of a JSON body by
	// their paths, such as params.name. Each must be present with the value, or with any value for "*". An empty value counts as
	// missing, and so does all of a body behind the bytes that are read: see Body of headgate.Request.
	Model string
	JSON  map[string]string
	// Not leaves out the requests that match all of its fields; nil leaves out none. It has no Not itself.
	Not *Match
}

// ForQueries reports whether only queries of a decision server match, because the match names a domain or descriptors.
func (m *Match) ForQueries() bool { return m.Domain != "" || len(m.Descriptors) > 0 }
