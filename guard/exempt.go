package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Exempt lists requests that fair share ignores: those that match any entry. Their work is not
// counted, so set the capacity lower by that amount.
type Exempt struct {
	// Paths are written as in rule.Match: exact, or a prefix like "/probes/*".
	Paths []string
	// Addresses are compared with the peer of the connection. Headers have no effect on that.
	Addresses []netip.Prefix
	// Methods are written as in rule.Match, and compared exactly.
	Methods []string
}

// mostExempt bounds each list of an Exempt.
const mostExempt = 256

// check finds an invalid entry.
func (e *Exempt) check() error {
	if len(e.Paths) > mostExempt || len(e.Addresses) > mostExempt || len(e.Methods) > mostExempt {
		return fmt.Errorf("Exempt has more than %d entries: use a prefix, a network, or Match", mostExempt)
	}
	for _, path := range e.Paths {
		if path == "" || path == "/*" {
			return errors.New("Exempt has a path that is every path: use Mode Off for that")
		}
	}
	for _, network := range e.Addresses {
		if !network.IsValid() {
			return errors.New("Exempt has an address that is not valid")
		}
		if network.Addr().Is4In6() { // Peers are compared as IPv4.
			return fmt.Errorf("Exempt has the address %s, which no peer has: write it as IPv4", network)
		}
	}
	for _, method := range e.Methods {
		if _, err := rule.ParseMethod(method); err != nil {
			return fmt.Errorf("Exempt has a method at fault: %w", err)
		}
	}
	return nil
}

// needs gives the facts that fair share reads: its client, its match, and the peer for exempt
// addresses.
func (f *FairShare) needs() rule.Needs {
	r := rule.Rule{Match: f.Match, Key: []rule.Part{f.Client}}
	needs := r.Needs()
	if len(f.Exempt.Addresses) > 0 {
		needs |= rule.NeedIP
	}
	return needs
}

// scope selects the requests that fair share decides on. A scope is immutable.
type scope struct {
	match  *rule.Index
	paths  *rule.Index // nil without paths
	exempt Exempt
}

// newScope makes the scope of a FairShare. Its rules are those of package rule: the path is the
// canonical path, which the service sees.
func newScope(f *FairShare, folds rule.Folds) (scope, error) {
	s := scope{exempt: Exempt{Addresses: slices.Clone(f.Exempt.Addresses), Methods: slices.Clone(f.Exempt.Methods)}}
	if err := f.Exempt.check(); err != nil {
		return s, err
	}
	for i, method := range s.exempt.Methods {
		s.exempt.Methods[i], _ = rule.ParseMethod(method)
	}
	key, err := rule.ParsePart("all")
	if err != nil {
		return s, err
	}
	match := f.Match
	match = folds.Match(match)
	s.match, err = rule.NewIndex([]rule.Rule{{Name: FairShareName, Match: match, Key: []rule.Part{f.Client}}})
	if err != nil {
		return s, err
	}
	if len(f.Exempt.Paths) == 0 {
		return s, nil
	}
	all := make([]rule.Rule, len(f.Exempt.Paths))
	for i, path := range f.Exempt.Paths {
		all[i] = rule.Rule{Name: fmt.Sprintf("exempt-%d", i), Match: rule.Match{Path: folds.Pattern(path)}, Key: []rule.Part{key}}
	}
	s.paths, err = rule.NewIndex(all)
	return s, err
}

// passesOver gives the reason why fair share ignores a request; "" means that it decides.
func (s *scope) passesOver(req *headgate.Request, a *Answer) string {
	if a.scoped = s.match.Match(req, a.scoped[:0]); len(a.scoped) == 0 {
		return "match does not fit"
	}
	if slices.Contains(s.exempt.Methods, req.Method) {
		return "the method is exempt"
	}
	if s.paths != nil {
		if a.scoped = s.paths.Match(req, a.scoped[:0]); len(a.scoped) > 0 {
			return "the path is exempt"
		}
	}
	for _, network := range s.exempt.Addresses {
		if network.Contains(req.IP.Unmap()) {
			return "the address is exempt"
		}
	}
	return ""
}

// The methods of gRPC's health and reflection. They are exempt from fair share, and from rules
// for every path.
const (
	healthPrefix     = "/grpc.health.v1.Health/"
	reflectionV1     = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	reflectionV1Beta = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
)

// methodPost is the method of every gRPC call. The guard imports no package of a protocol.
const methodPost = "POST"

// fromGRPC marks the Header of a request that a gRPC server has routed.
type fromGRPC interface{ FromGRPC() }

// probe reports whether a request is a call of gRPC's health or reflection that cannot reach
// another handler: inside a gRPC server, or on its way to a service that speaks HTTP/2. The
// method is compared as a whole.
func (s *set) probe(req *headgate.Request) bool {
	if !strings.HasPrefix(req.Path, "/grpc.") || req.Method != methodPost || req.Header == nil {
		return false
	}
	switch req.Path {
	case healthPrefix + "Check", healthPrefix + "Watch", healthPrefix + "List", reflectionV1, reflectionV1Beta:
	default:
		return false
	}
	if _, routed := req.Header.(fromGRPC); routed {
		return true
	}
	kind, _ := req.Header.Lookup("Content-Type")
	return s.config.ForwardsGRPC && isGRPC(kind)
}

// isGRPC reports whether a media type belongs to gRPC. gRPC-Web has another type.
func isGRPC(kind string) bool {
	rest, ok := strings.CutPrefix(kind, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// exemptProbe removes rules for every path from the matches of a probe. A rule that names its
// path still counts the probe.
func (s *set) exemptProbe(req *headgate.Request, matched []int) []int {
	if !s.probe(req) {
		return matched
	}
	return slices.DeleteFunc(matched, func(m int) bool {
		path := s.rules[m].Match.Path
		return path == "" || path == "/*"
	})
}

// exemptPreflight removes the rules that count units from the matches of a preflight. A rule that names OPTIONS still counts it.
func (s *set) exemptPreflight(req *headgate.Request, matched []int) []int {
	return slices.DeleteFunc(matched, func(m int) bool {
		r := s.rules[m].Rule
		alone := r.InFlight > 0 && len(r.Policies) == 0 && r.Quota == "" && r.Lease.Resource == ""
		return !alone && !slices.Contains(r.Match.Methods, req.Method)
	})
}

// ShareExempt gives the reason why fair share ignores a request, for an explanation. "" means that
// fair share decides, or that there is none.
func (g *Guard) ShareExempt(req *headgate.Request) string {
	s := g.now()
	if s == nil || s.share == nil || s.share.Mode == Off {
		return ""
	}
	seen := *req
	seen.Path = s.config.Folds.Path(seen.Path)
	s.config.Identity.Resolve(&seen, s.needs&rule.NeedClientIP)
	return s.shareExempt(&seen, new(Answer))
}

// shareExempt is ShareExempt with the memory of an Answer.
func (s *set) shareExempt(req *headgate.Request, a *Answer) string {
	if s.probe(req) {
		return "health and reflection of gRPC are exempt"
	}
	return s.share.scope.passesOver(req, a)
}
