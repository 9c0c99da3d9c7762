package config

import (
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/config/field"
)

// Auth is a set of ways in which the clients of a listener can prove who they are: either one is enough. 0 asks
// for no proof.
type Auth uint8

// The ways.
const (
	// AuthToken accepts the token of a caller.
	AuthToken Auth = 1 << iota
	// AuthMTLS accepts a verified client certificate with the name of a caller.
	AuthMTLS
)

// String lists the words of the configuration.
func (a Auth) String() string {
	switch a {
	case 0:
		return "none"
	case AuthToken:
		return "token"
	case AuthMTLS:
		return "mtls"
	default:
		return "token or mtls"
	}
}

// Scope is a set of what a caller may do.
type Scope uint8

// The scopes.
const (
	// ScopeDecide permits requests to decide.
	ScopeDecide Scope = 1 << iota
	// ScopeSendLimits permits limits that the client sends: overrides of descriptors, CL.THROTTLE and THROTTLE.
	ScopeSendLimits
	// ScopeRead permits reading the state under /api/v1.
	ScopeRead
	// ScopeAdminister permits changes under /api/v1, and profiles.
	ScopeAdminister
	// ScopeLease permits reports of headgate.lease.v1: claims of resources.
	ScopeLease
)

func scopeChoices() []choice[Scope] {
	return []choice[Scope]{
		{word: "decide", value: ScopeDecide},
		{word: "send_limits", value: ScopeSendLimits},
		{word: "read", value: ScopeRead},
		{word: "administer", value: ScopeAdminister},
		{word: "lease", value: ScopeLease},
	}
}

// String lists the words of the configuration, with commas.
func (s Scope) String() string {
	var all []string
	for _, c := range scopeChoices() {
		if s&c.value != 0 {
			all = append(all, c.word)
		}
	}
	return strings.Join(all, ", ")
}

// ParseScope reads one word of the configuration.
func ParseScope(word string) (s Scope, ok bool) {
	for _, c := range scopeChoices() {
		if c.word == word {
			return c.value, true
		}
	}
	return 0, false
}

// ServerLimits bounds what clients ask of one process of headgate server. Limits of 0 in no time are none.
type ServerLimits struct {
	// Caller bounds the requests to decide of each caller.
	Caller headgate.Limit
	// Address bounds the calls, requests and commands of each IPv4 address or IPv6 /64, before
	// authentication. Connections bounds their new connections.
	Address, Connections headgate.Limit
}

// OnlyLocal reports whether only the machine itself reaches a listen address: an address of loopback, or a unix
// socket.
func OnlyLocal(listen string) bool {
	if strings.HasPrefix(listen, unixPrefix) {
		return true
	}
	a, _, problem := parseAddress(listen)
	return problem == "" && a.loopback()
}

// serverLimits reads the limits of the server itself.
func (s *section) serverLimits(l *ServerLimits) {
	const example = "{caller: 10000/s, address: 1000/s}"
	limits := s.sub(s.declare("limits", field.Taken, "Limits of the server itself, for each process. Default: none."), example)
	read := func(name, text string, into *headgate.Limit) {
		limits.outline.field(limits.declare(name, field.Taken, text)).written("", limitPattern)
		if v, ok := limits.scalar(name, "a limit"); ok {
			l := limits.oneLimit(v, headgate.Policy{Algorithm: headgate.TokenBucket})
			switch {
			case len(l.policies) == 0:
			case l.policies[0].Limit.Count == 0:
				limits.fault(v, "would refuse everyone", "write at least 1, like 1000/s, or leave it out for no limit")
			default:
				*into = l.policies[0].Limit
			}
		}
	}
	read("caller", "Requests to decide of each caller, like 10000/s.", &l.Caller)
	read("address", "Calls, requests and commands of one IPv4 address or IPv6 /64, before authentication, except "+
		"trusted_proxies.", &l.Address)
	read("connections", "New connections of one IPv4 address or IPv6 /64, except trusted_proxies.", &l.Connections)
	limits.end()
}

// auth reads how the clients of a listener prove who they are. tls are its certificates; nil for
// admin.listen, which asks for no client certificates.
func (s *section) auth(into *Auth, tls *TLS) {
	defer func() { s.keep("auth", *into) }()
	words := []choice[Auth]{{word: "token", value: AuthToken}}
	example, class := "token", field.Taken
	if tls != nil {
		class = field.Restart
		words = append(words, choice[Auth]{word: "mtls", value: AuthMTLS})
		example = "[token, mtls]"
	}
	s.declare("auth", class, "Proof that clients must give: none, token, mtls (a client certificate), or a list of which "+
		"one is enough.")
	if o := s.outline.field("auth"); o != nil {
		names, _ := built(words, 0)
		o.words("none", append([]string{"none"}, names...))
		o.entries().words("", names)
		o.list(1, len(words))
	}
	*into = 0
	entries := s.oneOrMore("auth", example, len(words))
	if len(entries) == 1 && (entries[0].path == s.pathOf("auth") || entries[0].variable != "") { // It is no list.
		words = append([]choice[Auth]{{word: "none"}}, words...)
	}
	for _, v := range entries {
		var one Auth
		chosen(s.reader, v, &one, words)
		if *into&one != 0 {
			s.fault(v, quote(v.text())+" appears twice", "remove one of them")
		}
		*into |= one
	}
	if tls != nil {
		tls.demand(*into)
	}
	v, ok := s.given("auth")
	if ok && *into != 0 {
		s.authenticated = append(s.authenticated, v)
	}
	if ok && *into&AuthMTLS != 0 && tls.ClientCA == "" && !s.blamedAt(s.pathOf("tls")) {
		s.fault(v, "needs the authorities of client certificates", "set "+s.pathOf("tls.client_ca"))
	}
}
