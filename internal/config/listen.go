package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/headgate/headgate/rule"
)

// address is a host and a port. The host is an IP address, a name, or empty for all addresses
// of the machine.
type address struct {
	host string
	port uint16
}

// listener is a configured listen address.
type listener struct {
	value   value // The node is nil for a default.
	address address
	text    string
}

// adminListen reads a listen address, or off. The address must have a host, because an admin
// listener shows internal data without authentication.
func (s *section) adminListen(name string, into *string) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).written(*into, adminPattern)
	v, ok := s.scalar(name, "an address")
	if ok && v.text() == "off" {
		*into = ""
		return
	}
	s.listenOn(name, v, ok, into, true)
}

// listenOn reads the address of v, or keeps the default in *into if ok is false. It records the
// address for checkListeners.
func (s *section) listenOn(name string, v value, ok bool, into *string, admin bool) {
	if ok {
		if !s.checkAddress(v, admin) {
			return
		}
		*into = v.text()
	}
	if !s.blamed(s.pathOf(name)) {
		a, _, _ := parseAddress(*into)
		v.path = s.pathOf(name)
		s.listeners = append(s.listeners, listener{v, a, *into})
	}
}

// Prefixes and words of listen addresses that are not host:port.
const (
	unixPrefix    = "unix:"
	systemdWord   = "systemd"
	systemdPrefix = systemdWord + ":"
)

// front reads where the proxy listens: an address, unix:/path, or a socket inherited from systemd.
func (s *section) front(name string, into *string) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).written(*into, frontPattern)
	v, ok := s.scalar(name, "an address")
	s.frontAddress(name, v, ok, into)
}

// frontAddress reads the address of v, or keeps the default in *into if ok is false.
func (s *section) frontAddress(name string, v value, ok bool, into *string) {
	switch {
	case ok && strings.HasPrefix(v.text(), unixPrefix):
		if path, ok := s.socket(v, "/run/headgate.sock"); ok {
			*into = unixPrefix + path
		}
	case ok && (v.text() == systemdWord || strings.HasPrefix(v.text(), systemdPrefix)):
		s.inherited(v, into)
	case ok && rule.Nearest(v.text(), []string{systemdWord}) != "":
		s.fault(v, quote(v.text())+" is not known", "did you mean "+systemdWord+"?")
	default:
		s.listenOn(name, v, ok, into, false)
	}
}

// inherited reads systemd or systemd:NAME. NAME is the FileDescriptorName= of a systemd unit.
func (s *section) inherited(v value, into *string) {
	name, named := strings.CutPrefix(v.text(), systemdPrefix)
	const fix = "write the name from FileDescriptorName=, like systemd:web"
	bad := strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c > '~' || c == ':' })
	switch {
	case !named:
		*into = v.text()
	case name == "":
		s.faultAt(v, len(systemdPrefix), "has no socket name after its colon", "remove the colon, or "+fix)
	case bad >= 0:
		s.faultAt(v, len(systemdPrefix)+bad, "has "+quote(name[bad:])+" in its socket name, which is not allowed", fix)
	case len(name) > maxSocketName:
		s.fault(v, fmt.Sprintf("has a socket name of %d bytes", len(name)), fmt.Sprintf("use at most %d", maxSocketName))
	default:
		*into = v.text()
	}
}

const (
	// maxSocketName is the longest FileDescriptorName= that systemd accepts.
	maxSocketName = 255
	// maxSocketPath is the longest path that fits in the address of a unix socket.
	maxSocketPath = 107
)

// socket reads unix:/path, or the URL unix:///path, and returns the cleaned path: two spellings
// of one socket must compare as equal. The fix of a fault shows example.
func (r *reader) socket(v value, example string) (string, bool) {
	written := strings.TrimPrefix(strings.TrimPrefix(v.text(), unixPrefix), "//")
	path := filepath.Clean(written)
	fix := "write it like " + unixPrefix + example
	bad := strings.IndexFunc(written, unicode.IsControl)
	switch {
	case !filepath.IsAbs(written):
		r.fault(v, "has no absolute path", fix)
	case strings.HasSuffix(written, "/"):
		r.fault(v, "ends with a slash, so it is not a socket", fix)
	case bad >= 0:
		r.fault(v, "has "+quote(written[bad:])+" in its path", fix)
	case len(path) > maxSocketPath:
		r.fault(v, fmt.Sprintf("has a path of %d bytes, but the longest for a socket is %d", len(path), maxSocketPath),
			"use a shorter path, for example in /run")
	default:
		return path, true
	}
	return "", false
}

func (r *reader) checkAddress(v value, admin bool) bool {
	a, offset, problem := parseAddress(v.text())
	example := "127.0.0.1:8080"
	if admin {
		example = "127.0.0.1:9902"
	}
	switch {
	case v.text() == "":
		r.fault(v, "is empty", "write it like "+example+map[bool]string{true: ", or off"}[admin])
		return false
	case strings.Trim(v.text(), "0123456789") == "":
		fix := "write 127.0.0.1:" + v.text()
		if !admin {
			fix += ", or :" + v.text() + " for all addresses of the machine"
		}
		r.fault(v, "address "+quote(v.text())+" is a port without a host", fix)
		return false
	case problem != "":
		r.faultAt(v, offset, "address "+quote(v.text())+" "+problem, "write it like "+example)
		return false
	case admin && a.host == "":
		r.fault(v, "address "+quote(v.text())+" has no host, so it would be open to every network",
			fmt.Sprintf("write 127.0.0.1:%d, or 0.0.0.0:%d for every network", a.port, a.port))
		return false
	}
	return true
}

// parseAddress reads host:port. problem says what is wrong at offset, or is "".
func parseAddress(text string) (a address, offset int, problem string) {
	host, port, err := net.SplitHostPort(text)
	colon := strings.LastIndexByte(text, ':')
	switch {
	case err != nil && colon < 0:
		return a, len(text), "has no port"
	case err != nil:
		return a, 0, "is not host:port, or has an IPv6 address without brackets"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || port != strconv.FormatUint(number, 10) {
		return a, colon + 1, "has the port " + quote(port) + ", which is not in 0 to 65535"
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !isHostName(host) {
		return a, 0, "has the host " + quote(host) + ", which is not a valid host"
	}
	return address{host, uint16(number)}, 0, ""
}

// isHostName reports whether a name has only characters of host names, and no empty label. A dot
// may end it. A name with only digits and dots is an invalid IP address.
func isHostName(host string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return len(host) <= 253 && strings.ContainsAny(host, letters) && !strings.Contains("."+host, "..") &&
		strings.IndexFunc(host, func(c rune) bool { return !strings.ContainsRune(letters+"0123456789-._", c) }) < 0
}

// overlaps reports whether two listeners would certainly conflict.
func (a address) overlaps(b address) bool {
	if a.port != b.port || a.port == 0 {
		return false
	}
	return a.host == b.host || a.everywhere() || b.everywhere() || a.loopback() && b.loopback() && (a.name() || b.name())
}

func (a address) everywhere() bool {
	ip, err := netip.ParseAddr(a.host)
	return a.host == "" || err == nil && ip.IsUnspecified()
}

func (a address) loopback() bool {
	ip, err := netip.ParseAddr(a.host)
	return strings.EqualFold(a.host, "localhost") || err == nil && ip.IsLoopback()
}

func (a address) name() bool {
	_, err := netip.ParseAddr(a.host)
	return a.host != "" && err != nil
}

// checkListeners finds listeners on the same address.
func (r *reader) checkListeners() {
	for i, one := range r.listeners {
		for _, other := range r.listeners[:i] {
			if !one.address.overlaps(other.address) || !ofOneCommand(one, other) {
				continue
			}
			blame, taken := one, other
			if blame.value.node == nil {
				blame, taken = other, one
			}
			r.fault(blame.value,
				fmt.Sprintf("address %q is already used by %s (%s)", blame.text, taken.value.path, taken.text), "use another port")
		}
	}
}
