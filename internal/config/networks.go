package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/readfile"
	"github.com/headgate/headgate/rule"
)

const (
	networksFileField = "networks_file"
	// maxFileNetworks bounds the networks of one file, and maxNetworksBytes its size.
	maxFileNetworks  = 10_000
	maxNetworksBytes = 1 << 20
	// maxNetworkFiles bounds the files of networks of a configuration.
	maxNetworkFiles = 64
)

// networkFiles are the files of networks that a configuration names. Matches that name one file share its list.
type networkFiles struct {
	folder string // of the configuration
	stamps stamps // of the files before they were read
	read   map[string]networkList
	// closed means that no further file is read: the rules of a source are written elsewhere, and must not name files of this machine.
	closed bool
}

type networkList struct {
	networks []netip.Prefix
	problem  string // "" for a file that was read
}

func (l *networkList) result() ([]netip.Prefix, error) {
	if l.problem != "" {
		return nil, errors.New(l.problem)
	}
	return l.networks, nil
}

func newNetworkFiles(configuration string) *networkFiles {
	return &networkFiles{folder: filepath.Dir(configuration), stamps: stamps{}, read: map[string]networkList{}}
}

// list reads a file, once.
func (f *networkFiles) list(path string) ([]netip.Prefix, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.folder, path)
	}
	known, found := f.read[path]
	switch {
	case found:
		return known.result()
	case f.closed:
		return nil, errors.New("names a file that the configuration file does not name: write the networks as addresses")
	case len(f.read) == maxNetworkFiles:
		return nil, fmt.Errorf("is one file of networks more than %d: use one file for several rules", maxNetworkFiles)
	}
	f.stamps.take(path)
	text, err := readfile.Head(path, maxNetworksBytes+1)
	if err == nil {
		known.networks, err = parseNetworks(text)
	}
	if err != nil {
		known.problem = fmt.Sprintf("%s: %v", path, err)
	}
	f.read[path] = known
	return known.result()
}

// known gives the same files, and reads no others.
func (f *networkFiles) known() *networkFiles {
	if f == nil {
		return nil
	}
	return &networkFiles{folder: f.folder, stamps: f.stamps, read: f.read, closed: true}
}

// paths lists the files that were read.
func (f *networkFiles) paths() []string {
	if f == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.read))
}

// parseNetworks reads one network or address a line. Text behind # is a comment.
func parseNetworks(text []byte) ([]netip.Prefix, error) {
	if len(text) > maxNetworksBytes {
		return nil, fmt.Errorf("the file has more than %s: use fewer or wider networks", field.FormatSize(maxNetworksBytes))
	}
	var all []netip.Prefix
	number := 0
	for line := range bytes.Lines(text) {
		number++
		content, _, _ := strings.Cut(string(line), "#")
		if content = strings.TrimSpace(content); content == "" {
			continue
		}
		if len(all) == maxFileNetworks {
			return nil, fmt.Errorf("line %d is a network more than %d: use wider networks, or a second rule", number, maxFileNetworks)
		}
		network, problem, fix := parseNetwork(content)
		if problem != "" {
			return nil, fmt.Errorf("line %d: %s: %s", number, problem, fix)
		}
		all = append(all, network)
	}
	if len(all) == 0 {
		return nil, errors.New("the file has no network: write one a line, like 10.0.0.0/8")
	}
	return all, nil
}

// parseNetwork reads an IP address or a network. problem is "" if text is one.
func parseNetwork(text string) (network netip.Prefix, problem, fix string) {
	if !strings.Contains(text, "/") {
		ip, err := netip.ParseAddr(text)
		if err == nil && ip.Zone() == "" && !ip.Is4In6() {
			return netip.PrefixFrom(ip, ip.BitLen()), "", ""
		}
		problem, fix = addressProblem(text, ip, err)
		return network, problem, fix
	}
	network, err := netip.ParsePrefix(text)
	switch {
	case err != nil || network.Addr().Is4In6():
		problem, fix = addressProblem(text, network.Addr(), err)
	case network != network.Masked():
		problem = fmt.Sprintf("%s has bits beyond its /%d", quote(text), network.Bits())
		fix = fmt.Sprintf("write %s, or %s for one address", network.Masked(), network.Addr())
	}
	return network, problem, fix
}

// addressProblem describes a text that is not a supported address or network.
func addressProblem(text string, ip netip.Addr, err error) (problem, fix string) {
	switch {
	case err == nil && ip.Zone() != "":
		return quote(text) + " has a zone, but addresses of requests have none", "remove % and the text after it"
	case err == nil && ip.Is4In6():
		return quote(text) + " is IPv4 in IPv6, but requests have plain IPv4 addresses", "write it as IPv4, like 10.0.0.0/8"
	default:
		return quote(text) + " is not an address or a network", "write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1"
	}
}

// addresses reads the networks of a match, and those of its file.
func (s *section) addresses(m *rule.Match) {
	s.declare("addresses", field.Taken, "Addresses and networks. The client's address must be in one of them: the address that identity "+
		"finds, or that of the peer.")
	s.outline.field("addresses").entries().written("", networkPattern)
	entries, _ := s.scalars("addresses", "[10.0.0.0/8]", maxMatches)
	for _, v := range entries {
		if network, ok := s.network(v); ok {
			m.Addresses = append(m.Addresses, network)
		}
	}
	path := new(string)
	s.file(s.declare(networksFileField, field.Taken, "File with further addresses and networks, one a line; # begins a comment. It is "+
		"read again "+
		"when it changes."), path)
	v, ok := s.given(networksFileField)
	if !ok || *path == "" {
		return
	}
	if s.networks == nil { // Parse reads no file, and its Config makes no guard. No client has this address.
		s.unreadNetworks, m.Addresses = true, append(m.Addresses, netip.PrefixFrom(netip.IPv4Unspecified(), 32))
		return
	}
	networks, err := s.networks.list(*path)
	switch {
	case err != nil:
		s.fault(v, err.Error(), "correct the file, or write addresses")
	case len(m.Addresses) == 0:
		m.Addresses = networks
	default:
		m.Addresses = slices.Concat(m.Addresses, networks)
	}
}
