package httpdecide

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// family names the fields in which a gateway states the request of its client. Only the family of the
// URL is read: the other one may come from the client.
type family struct{ method, host, uri string }

func original() family { return family{"X-Original-Method", "X-Original-Host", "X-Original-Uri"} }

func forwarded() family {
	return family{"X-Forwarded-Method", "X-Forwarded-Host", "X-Forwarded-Uri"}
}

// question is the query of a subrequest.
type question struct {
	family

	refuse int // the status for every refusal; 0 for that of the rule
}

const howToAsk = "write /v1/decide?from=original for X-Original-Method, -Host and -URI, or ?from=forwarded for X-Forwarded-Method, " +
	"-Host and -Uri; &refuse=403 answers every refusal with 403"

// ask reads the query of a subrequest. The usual ones make no map.
func ask(raw string) (question, bool) {
	switch raw {
	case "from=original":
		return question{original(), 0}, true
	case "from=forwarded":
		return question{forwarded(), 0}, true
	case "from=original&refuse=403":
		return question{original(), http.StatusForbidden}, true
	case "from=forwarded&refuse=403":
		return question{forwarded(), http.StatusForbidden}, true
	}
	values, err := url.ParseQuery(raw)
	if err != nil || len(values["from"]) != 1 || len(values["refuse"]) > 1 || len(values) > 1+len(values["refuse"]) {
		return question{}, false
	}
	q := question{family: original()}
	if from := values.Get("from"); from == "forwarded" {
		q.family = forwarded()
	} else if from != "original" {
		return question{}, false
	}
	if values.Has("refuse") {
		q.refuse = http.StatusForbidden
		return q, values.Get("refuse") == "403"
	}
	return q, true
}

// exchange is one subrequest, with memory that later ones use again.
type exchange struct {
	httplimit.Exchange

	announcer fields.Announcer
	request   http.Request
	target    url.URL
}

// get decides the request that a subrequest describes.
func (s *Service) get(w http.ResponseWriter, r *http.Request) {
	s.stats.gets.Add(1)
	q, known := ask(r.URL.RawQuery)
	if !known {
		refuse(w, http.StatusBadRequest, howToAsk)
		return
	}
	peer := peerOf(r.RemoteAddr)
	instance, _ := s.instance.Load().(string)
	refused := q.restating(w)
	if !s.guard.Identity().Trusts(peer) {
		s.refuseUntrusted(refused, peer)
		return
	}
	x, ok := s.exchanges.Get().(*exchange)
	if !ok {
		x = &exchange{Exchange: httplimit.Exchange{ResolvePath: true, OneValue: true, Plain: true}}
	}
	x.Instance = instance
	if err := x.describe(s.guard, r, q.family); err != nil {
		s.stats.faults.Add(1)
		refuse(refused, http.StatusBadRequest, err.Error())
	} else {
		s.answer(w, refused, r, x, peer)
	}
	x.Reset()
	x.request, x.target = http.Request{}, url.URL{}
	s.exchanges.Put(x)
}

// answer decides the request that peer describes, and answers. refused gets every refusal, and w the other answers.
func (s *Service) answer(w, refused http.ResponseWriter, r *http.Request, x *exchange, peer netip.Addr) {
	s.stats.requests.Add(1)
	call := access.CallOf(r.Context())
	err := s.decide(r, x, call.Client(), peer)
	if _, denied := access.ReasonOf(err); denied {
		call.Refused(err)
		refuseGateway(w, refused, err)
		return
	}
	if lacks, found := errors.AsType[*guard.UnsuppliedError](err); found {
		s.refuseUnsupplied(ruled(refused), lacks)
		return
	}
	if err != nil {
		s.stats.faults.Add(1)
		if x.Fail(refused, err) {
			s.log.Error("could not decide a subrequest", "error", err)
		}
		return
	}
	if remote.Undecided(&x.Answer) {
		s.stats.faults.Add(1)
		refuse(w, http.StatusServiceUnavailable, remote.ErrUnavailable.Error())
		return
	}
	var a remote.Answer
	remote.Read(&x.Answer, x.Request.Path, &a)
	x.announcer.Announce(fields.Draft, fields.Map(w.Header()), &x.Answer)
	if a.Verdict == headgate.Deny {
		x.Refuse(ruled(refused))
		return
	}
	a.Marks(func(name, value string) {
		if name != guard.FieldMark { // Announce has set it.
			w.Header().Add(name, value)
		}
	})
	w.WriteHeader(http.StatusNoContent)
}

// decide decides the described request. The error is of package access, of Identify or of guard.Decide.
func (s *Service) decide(r *http.Request, x *exchange, client *access.Client, peer netip.Addr) error {
	if err := client.TakeAll(1); err != nil {
		return err
	}
	if err := x.Identify(s.guard, &x.request); err != nil {
		return err
	}
	x.findClient(s.guard, peer)
	x.Request.Permitted, x.Request.NoWait = client.Rules(), true
	err := s.guard.DecideFrom(r.Context(), s.front, &x.Request, &x.Answer)
	if outside, found := errors.AsType[*guard.PermitError](err); found {
		return client.OutsideRules(outside.Rule)
	}
	return err
}

// describe makes the request of the gateway's client.
func (x *exchange) describe(g *guard.Guard, r *http.Request, f family) error {
	method, err := only(r.Header, f.method, true)
	if err != nil {
		return err
	}
	uri, err := only(r.Header, f.uri, true)
	if err != nil {
		return err
	}
	host, err := only(r.Header, f.host, false)
	if err != nil {
		return err
	}
	if err := checkMethod(method); err != nil {
		return fmt.Errorf("%s %w", f.method, err)
	}
	if err := checkHost(host); err != nil {
		return fmt.Errorf("%s %w", f.host, err)
	}
	if err := x.readTarget(method, uri); err != nil {
		return fmt.Errorf("%s %w", f.uri, err)
	}
	if g.Needs()&byAddress != 0 && len(r.Header["X-Forwarded-For"]) == 0 {
		return errors.New("X-Forwarded-For is missing, and rules count by addresses: the gateway must set it")
	}
	x.request = http.Request{Method: method, Host: host, URL: &x.target, Header: r.Header, Body: http.NoBody}
	return nil
}

// byAddress are the needs of rules that count by addresses.
const byAddress = rule.NeedIP | rule.NeedXFFIP | rule.NeedUserIP | rule.NeedRegion

// findClient sets the address of the gateway's client, by the rules of identity. peer is the gateway.
func (x *exchange) findClient(g *guard.Guard, peer netip.Addr) {
	if needs := g.Needs() & byAddress; needs != 0 {
		x.Request.IP = peer
		g.Identity().Resolve(&x.Request, needs|rule.NeedXFFIP)
		x.Request.IP = x.Request.XFFIP
	}
}

// only gives the value of a field that may come only once.
func only(h http.Header, name string, required bool) (string, error) {
	switch values := h[name]; {
	case len(values) == 1 && (values[0] != "" || !required):
		return values[0], nil
	case len(values) > 1:
		return "", errors.New(name + " came twice: the gateway must overwrite it")
	case required:
		return "", errors.New(name + " is missing: the gateway must set it")
	default:
		return "", nil
	}
}

// peerOf gives the address of the other end of a connection; the zero Addr for a unix socket.
func peerOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
