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

// Exempt lists the requests that fair share passes over: those that fit any entry. Their
// work is not counted, so leave room for it in the capacity.
type Exempt struct {
	// Paths are those of rule.Match: exact, or a prefix like "/probes/*".
	Paths []string
	// Addresses hold the peer, as the connection has it: no header says otherwise.
	Addresses []netip.Prefix
	// Methods are compared as they are.
	Methods []string
}

// mostExempt bounds each list of an Exempt.
const mostExempt = 256

// check says which entry is none.
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
	if slices.Contains(e.Methods, "") {
		return errors.New("Exempt has an empty method")
	}
	return nil
}

// needs gives what fair share looks at: its client, its match, and the peer for exempt addresses.
func (f *FairShare) needs() rule.Needs {
	of := rule.Rule{Match: f.Match, Key: []rule.Part{f.Client}}
	needs := of.Needs()
	if len(f.Exempt.Addresses) > 0 {
		needs |= rule.NeedIP
	}
	return needs
}

// scope says which requests fair share is asked about. It is immutable.
type scope struct {
	match  *rule.Index
	paths  *rule.Index // nil is none
	exempt Exempt
}

// newScope makes the scope of a FairShare. Its rules are those of package rule: the path
// is the canonical one, which the service sees.
func newScope(f *FairShare, folds rule.Folds) (scope, error) {
	s := scope{exempt: Exempt{Addresses: slices.Clone(f.Exempt.Addresses), Methods: slices.Clone(f.Exempt.Methods)}}
	if err := f.Exempt.check(); err != nil {
		return s, err
	}
	key, err := rule.ParsePart("all")
	if err != nil {
		return s, err
	}
	match := f.Match
	match.Path = folds.Pattern(match.Path)
	s.match, err = rule.NewIndex([]rule.Rule{{Name: FairShareName, Match: match, Key: []rule.Part{key}}})
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

// passesOver says why fair share is not asked about a request; "" means that it is.
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

// The methods of gRPC's health and reflection. They are exempt from fair share and
// from rules of every path.
const (
	healthPrefix     = "/grpc.health.v1.Health/"
	reflectionV1     = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	reflectionV1Beta = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
)

// methodPost is that of every call of gRPC. The guard imports no package of a protocol.
const methodPost = "POST"

// fromGRPC is what the Header of a request has that a gRPC server has routed.
type fromGRPC interface{ FromGRPC() }

// probe reports whether a request is a call of gRPC's health or reflection, which would
// reach nothing else: inside a gRPC server, or on its way to a service that speaks HTTP/2.
// The method is compared as a whole, so no other call passes for one.
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

// isGRPC reports whether a media type is gRPC's: that of gRPC-Web is another.
func isGRPC(kind string) bool {
	rest, ok := strings.CutPrefix(kind, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// exemptProbe takes the rules of every path out of those that match a probe. A rule that
// names its path still counts it.
func (s *set) exemptProbe(req *headgate.Request, matched []int) []int {
	if !s.probe(req) {
		return matched
	}
	return slices.DeleteFunc(matched, func(m int) bool {
		path := s.rules[m].Match.Path
		return path == "" || path == "/*"
	})
}

// ShareExempt says why fair share passes over a request, for an explanation. "" means that
// it decides, or that there is none.
func (g *Guard) ShareExempt(req *headgate.Request) string {
	s := g.now()
	if s == nil || s.share == nil || s.share.Mode == Off {
		return ""
	}
	seen := *req
	seen.Path = s.config.Folds.Path(seen.Path)
	return s.shareExempt(&seen, new(Answer))
}

// shareExempt is ShareExempt, with the room of an Answer.
func (s *set) shareExempt(req *headgate.Request, a *Answer) string {
	if s.probe(req) {
		return "health and reflection of gRPC are exempt"
	}
	return s.share.scope.passesOver(req, a)
}
