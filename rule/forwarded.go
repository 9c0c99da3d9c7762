package rule

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// maxForwarded limits the X-Forwarded-For entries that are read. Real proxy chains are
// shorter, and a long forged header must not cost much time.
const maxForwarded = 64

// xffIP returns the client address from X-Forwarded-For. Every proxy appends the
// address of its peer, so entries are true from the right while proxies are trusted.
// The first entry from the right that is not a trusted proxy is the client. The client
// may have forged the entries to its left.
func (id *Identity) xffIP(req *headgate.Request) netip.Addr {
	if !id.Trusts(req.IP) {
		return req.IP
	}
	var room [1]string
	sender, found := id.firstUntrusted(lines(req.Header, "X-Forwarded-For", &room))
	if !found {
		return req.IP
	}
	return sender
}

// clientIP returns the address of the client. See Resolve.
func (id *Identity) clientIP(req *headgate.Request) netip.Addr {
	if !id.Trusts(req.IP) {
		return req.IP
	}
	if sender, found := id.userIPHeader(req); found {
		return sender
	}
	var room [1]string
	sender, found, plain := id.readForwarded(lines(req.Header, "X-Forwarded-For", &room))
	switch {
	case found:
		return sender
	case plain:
		return req.IP
	default:
		return netip.Addr{}
	}
}

// firstUntrusted reads the entries of all lines from the right. firstUntrusted reports false when
// all entries are trusted, before an invalid address, and after maxForwarded entries.
func (id *Identity) firstUntrusted(lines []string) (sender netip.Addr, found bool) {
	sender, found, _ = id.readForwarded(lines)
	return sender, found
}

// readForwarded is firstUntrusted. plain says that all entries are trusted.
func (id *Identity) readForwarded(lines []string) (sender netip.Addr, found, plain bool) {
	looked := 0
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			if looked == maxForwarded {
				return netip.Addr{}, false, false
			}
			looked++
			entry := line
			comma := strings.LastIndexByte(line, ',')
			if more = comma >= 0; more {
				line, entry = line[:comma], line[comma+1:]
			}
			ip, ok := parseSender(entry)
			if !ok {
				return netip.Addr{}, false, false
			}
			if !id.Trusts(ip) {
				return ip, true, false
			}
		}
	}
	return netip.Addr{}, false, true
}

// userIP returns the client address from the first user-IP header of the request, or the peer.
func (id *Identity) userIP(req *headgate.Request) netip.Addr {
	if !id.Trusts(req.IP) {
		return req.IP
	}
	if sender, _ := id.userIPHeader(req); sender.IsValid() {
		return sender
	}
	return req.IP
}

// userIPHeader returns the address in the first user-IP header that the request has. Two lines or two addresses come from a wrong
// proxy or a forged header, and either could be false: then it returns no address.
func (id *Identity) userIPHeader(req *headgate.Request) (sender netip.Addr, found bool) {
	var room [1]string
	for _, name := range id.UserIPHeaders {
		if all := lines(req.Header, name, &room); len(all) > 0 {
			if ip, ok := parseSender(all[0]); ok && len(all) == 1 {
				sender = ip
			}
			return sender, true
		}
	}
	return netip.Addr{}, false
}

// lines returns all lines of a header. A front without headgate.Lines knows one line,
// which lines stores in room: a new slice would be an allocation.
func lines(values headgate.Values, name string, room *[1]string) []string {
	if values == nil {
		return nil
	}
	if all, ok := values.(headgate.Lines); ok {
		return all.Lines(name)
	}
	value, present := values.Lookup(name)
	if !present {
		return nil
	}
	room[0] = value
	return room[:]
}
