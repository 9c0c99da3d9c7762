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

// address is a host and a port. The host is empty for every address of the
// machine, an IP address, or a name.
type address struct {
	host string
	port uint16
}

// listener is an address that headgate would listen on.
type listener struct {
	value   value // Its node is nil for a default.
	address address
	text    string
}

// adminListen reads an address to listen on, or off. It must say which addresses it
// means: an admin listener shows much and asks for nothing.
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

// listenOn takes the address of v, or, if there is none, the default in into, and
// keeps it for checkListeners.
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

// The ways to listen besides an address.
const (
	unixPrefix    = "unix:"
	systemdWord   = "systemd"
	systemdPrefix = systemdWord + ":"
)

// front reads where the proxy listens: an address, the socket unix:/path, or one
// that the process was started with.
func (s *section) front(name string, into *string) {
	defer func() { s.keep(name, *into) }()
	s.outline.field(name).written(*into, frontPattern)
	v, ok := s.scalar(name, "an address")
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

// inherited reads systemd or systemd:NAME, the name as FileDescriptorName= has it.
func (s *section) inherited(v value, into *string) {
	name, named := strings.CutPrefix(v.text(), systemdPrefix)
	const fix = "write it as FileDescriptorName= has it, like systemd:web"
	bad := strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c > '~' || c == ':' })
	switch {
	case !named:
		*into = v.text()
	case name == "":
		s.faultAt(v, len(systemdPrefix), "has no name of a socket behind its colon", "leave the colon out, or "+fix)
	case bad >= 0:
		s.faultAt(v, len(systemdPrefix)+bad, "has "+quote(name[bad:])+" in the name of a socket, which no socket has", fix)
	case len(name) > maxSocketName:
		s.fault(v, fmt.Sprintf("has a name of a socket of %d bytes", len(name)), fmt.Sprintf("use at most %d", maxSocketName))
	default:
		*into = v.text()
	}
}

const (
	// maxSocketName is systemd's bound of FileDescriptorName=.
	maxSocketName = 255
	// maxSocketPath is what the address of a unix socket has room for.
	maxSocketPath = 107
)

// socket reads unix:/path, or the same as a URL, unix:///path, and gives the path
// as it is without detours: one socket has one name. example is such a path.
func (r *reader) socket(v value, example string) (string, bool) {
	written := strings.TrimPrefix(strings.TrimPrefix(v.text(), unixPrefix), "//")
	path := filepath.Clean(written)
	fix := "write it like " + unixPrefix + example
	bad := strings.IndexFunc(written, unicode.IsControl)
	switch {
	case !filepath.IsAbs(written):
		r.fault(v, "has no absolute path of a socket", fix)
	case strings.HasSuffix(written, "/"):
		r.fault(v, "ends with a slash, as folders do", fix)
	case bad >= 0:
		r.fault(v, "has "+quote(written[bad:])+" in its path", fix)
	case len(path) > maxSocketPath:
		r.fault(v, fmt.Sprintf("has a path of %d bytes, and sockets have room for %d", len(path), maxSocketPath),
			"use a shorter one, in /run for instance")
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
			fix += ", or :" + v.text() + " for every address of the machine"
		}
		r.fault(v, "address "+quote(v.text())+" is a port without a host", fix)
		return false
	case problem != "":
		r.faultAt(v, offset, "address "+quote(v.text())+" "+problem, "write it like "+example)
		return false
	case admin && a.host == "":
		r.fault(v, "address "+quote(v.text())+" has no host, and would be open to every network",
			fmt.Sprintf("write 127.0.0.1:%d, or 0.0.0.0:%d if every network is meant", a.port, a.port))
		return false
	}
	return true
}

// parseAddress reads host:port; problem is what is wrong at offset, or "".
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
		return a, colon + 1, "has the port " + quote(port) + ", which is not 0 to 65535"
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !isHostName(host) {
		return a, 0, "has the host " + quote(host) + ", which no machine can have"
	}
	return address{host, uint16(number)}, 0, ""
}

// isHostName reports whether a name is made of what names of hosts are made of.
// Digits and dots alone are an IP address, and a wrong one.
func isHostName(host string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return len(host) <= 253 && strings.ContainsAny(host, letters) &&
		strings.IndexFunc(host, func(c rune) bool { return !strings.ContainsRune(letters+"0123456789-._", c) }) < 0
}

// overlaps reports whether two listeners would surely be in each other's way.
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

// checkListeners finds listeners that take each other's address.
func (r *reader) checkListeners() {
	for i, one := range r.listeners {
		for _, other := range r.listeners[:i] {
			if !one.address.overlaps(other.address) {
				continue
			}
			blame, taken := one, other
			if blame.value.node == nil {
				blame, taken = other, one
			}
			r.fault(blame.value,
				fmt.Sprintf("address %q is taken by %s (%s)", blame.text, taken.value.path, taken.text), "use another port")
		}
	}
}
