package httpdecide

import (
	"net/http"
	"net/netip"
	"time"
)

const untrusted = "the peer is not trusted to describe requests: add its address to identity.trusted_proxies"

// untrustedEvery is the least time between two lines about untrusted peers. A metric counts them all.
const untrustedEvery = 10 * time.Second

// refuseUntrusted refuses a subrequest of a peer outside trusted_proxies. The log names the peer, because a gateway may
// turn the answer into one for its client: then all of its clients look as if they were over their limits.
func (s *Service) refuseUntrusted(w http.ResponseWriter, peer netip.Addr) {
	n := s.stats.untrusted.Add(1)
	refuse(w, http.StatusForbidden, untrusted)
	now, quiet := time.Now(), s.quiet.until.Load()
	if now.UnixNano() < quiet || !s.quiet.until.CompareAndSwap(quiet, now.Add(untrustedEvery).UnixNano()) {
		return
	}
	s.log.Warn("refused a subrequest: "+untrusted, "peer", peer.String(), "since_last_line", n-s.quiet.logged.Swap(n))
}
