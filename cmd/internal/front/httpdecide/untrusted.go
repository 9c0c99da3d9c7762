package httpdecide

import (
	"net/http"
	"net/netip"
	"time"
)

const untrusted = "the peer is not trusted to describe requests: add its address to identity.trusted_proxies"

// refuseUntrusted refuses a subrequest of a peer outside trusted_proxies. The log names the peer, because a gateway may
// turn the answer into one for its client: then all of its clients look as if they were over their limits.
func (s *Service) refuseUntrusted(w http.ResponseWriter, peer netip.Addr) {
	refuse(w, http.StatusForbidden, untrusted)
	if since, log := s.untrusted.Event(time.Now()); log {
		s.log.Warn("refused a subrequest: "+untrusted, "peer", peer.String(), "since_last_line", since)
	}
}
