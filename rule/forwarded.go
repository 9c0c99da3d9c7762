package rule

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// maxForwarded bounds the entries of X-Forwarded-For that are looked at. No way
// through real proxies is so long, and a forger pays for his entries, not we.
const maxForwarded = 64

// xffIP gives the sender by X-Forwarded-For. Every proxy adds its peer at the right
// end, so that the entries are true from the right as far as the proxies are
// trusted: the first that is no trusted proxy is the sender, and what stands left
// of it is what the sender made up.
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

// firstUntrusted walks the entries of all lines from the right. It finds nothing
// when all are trusted, when one on the way is no address, and when there are more
// than maxForwarded.
func (id *Identity) firstUntrusted(lines []string) (sender netip.Addr, found bool) {
	looked := 0
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			if looked == maxForwarded {
				return netip.Addr{}, false
			}
			looked++
			entry := line
			comma := strings.LastIndexByte(line, ',')
			if more = comma >= 0; more {
				line, entry = line[:comma], line[comma+1:]
			}
			ip, ok := parseSender(entry)
			if !ok {
				return netip.Addr{}, false
			}
			if !id.Trusts(ip) {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}

// userIP gives the sender by the first of the user-IP headers that the request
// has. Two lines or two addresses in it are a proxy's fault or a forger's work: then
// nobody knows which is true.
func (id *Identity) userIP(req *headgate.Request) netip.Addr {
	if !id.Trusts(req.IP) {
		return req.IP
	}
	var room [1]string
	for _, name := range id.UserIPHeaders {
		found := lines(req.Header, name, &room)
		if len(found) == 0 {
			continue
		}
		if sender, ok := parseSender(found[0]); ok && len(found) == 1 {
			return sender
		}
		break
	}
	return req.IP
}

// lines gives all lines of a header, or the one that a front without
// headgate.Lines knows of, which stands in room: a slice of its own would be an
// allocation.
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
