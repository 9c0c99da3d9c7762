package rule

import (
	"fmt"
	"net/netip"
	"slices"
)

const (
	// MaxNetworks bounds the networks of one match.
	MaxNetworks = 11_000
	// maxAllNetworks bounds the networks of all rules. Matches that share one slice count it once. A network takes up to 200 bytes, and
	// more if others begin with the same bits.
	maxAllNetworks = 200_000
	// fewNetworks are compared one by one.
	fewNetworks = 4
	// mostIndexedNetworks is the length of a list up to which the index has a node for each network. It compares a longer list after the
	// other conditions of a rule, so that many rules with long lists do not take much memory.
	mostIndexedNetworks = 64
)

// networkSet is a set of networks: the addresses of a match.
type networkSet struct {
	all   []netip.Prefix // without duplicates
	table *networkTable  // nil for few networks
	few   []fewNetwork   // without a table
}

// fewNetwork is a network that is compared without a table.
type fewNetwork struct {
	trieTail

	four bool
}

func newNetworkSet(networks []netip.Prefix) *networkSet {
	s := &networkSet{all: slices.Clone(networks)}
	slices.SortFunc(s.all, comparePrefixes)
	s.all = slices.Compact(s.all)
	if len(s.all) > fewNetworks {
		s.table = newNetworkTable(s.all)
		return s
	}
	for _, network := range s.all {
		high, low := addressBits(network.Addr())
		s.few = append(s.few, fewNetwork{trieTail{high: high, low: low, bits: int32(network.Bits()), otherwise: -1}, network.Addr().Is4()})
	}
	return s
}

// contains reports whether one of the networks has the address. No network has the invalid address.
func (s *networkSet) contains(ip netip.Addr) bool {
	if s.table != nil {
		return s.table.narrowest(ip) >= 0
	}
	if ip = ip.Unmap(); !ip.IsValid() {
		return false
	}
	high, low := addressBits(ip)
	for i := range s.few {
		if n := &s.few[i]; n.four == ip.Is4() && n.leaf(high, low) >= 0 {
			return true
		}
	}
	return false
}

// comparePrefixes orders networks by their addresses, and wider ones first.
func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// networkList identifies a slice of networks, so that rules with one long list share its table.
type networkList struct {
	first *netip.Prefix
	n     int
}

func listOf(networks []netip.Prefix) networkList { return networkList{&networks[0], len(networks)} }

// networkSets makes each set once.
type networkSets map[networkList]*networkSet

func (sets networkSets) set(networks []netip.Prefix) *networkSet {
	list := listOf(networks)
	if sets[list] == nil {
		sets[list] = newNetworkSet(networks)
	}
	return sets[list]
}

// networkBranch has the rules of each network.
type networkBranch struct {
	networks []netip.Prefix // while the branch is built
	nodes    []node
	table    *networkTable
}

func (s *search) visitNetworks(b *networkBranch) {
	for i := b.table.narrowest(s.req.ClientIP); i >= 0; i = b.table.wider[i] {
		s.visit(b.nodes[i])
	}
}

// checkNetworks checks the addresses of a match.
func (c *checker) checkNetworks(field string, networks []netip.Prefix) {
	if len(networks) == 0 {
		return
	}
	if len(networks) > MaxNetworks {
		c.note(field, fault{fmt.Sprintf("has %d networks", len(networks)), fmt.Sprintf("use at most %d", MaxNetworks)})
		return
	}
	if list := listOf(networks); !c.networks[list] {
		c.networks[list] = true
		if c.allNetworks += len(networks); c.allNetworks > maxAllNetworks {
			c.note(field, fault{
				fmt.Sprintf("makes more than %d networks of all rules", maxAllNetworks),
				"use fewer or wider networks, or one networks_file for several rules",
			})
			return
		}
	}
	for i, network := range networks {
		c.note(fmt.Sprintf("%s[%d]", field, i), networkFault(network))
	}
}

func networkFault(network netip.Prefix) fault {
	switch {
	case !network.IsValid():
		return fault{"is not a network", "write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1/32"}
	case network.Addr().Is4In6():
		return fault{fmt.Sprintf("%s is IPv4 in IPv6, but addresses of clients are plain IPv4", network), "write it as IPv4, like " +
			"10.0.0.0/8"}
	case network != network.Masked():
		return fault{
			fmt.Sprintf("%s has bits beyond its /%d", network, network.Bits()),
			fmt.Sprintf("write %s, or %s/%d for one address", network.Masked(), network.Addr(), network.Addr().BitLen()),
		}
	default:
		return fault{}
	}
}
