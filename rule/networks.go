package rule

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// networkIndex finds the longest network of a list that contains an address. It searches the lengths in halves: a network puts
// marks under the shorter lengths that the search visits on its way, so that a miss means that no longer network is there. A lookup
// therefore reads at most six entries for IPv4 and eight for IPv6, whatever the number of networks. A list with one length for
// each family, such as single addresses, needs one.
type networkIndex struct {
	v4 networkFamily[uint64]
	v6 networkFamily[[3]uint64]
	// around has for each network the longest of the others that contain it, or noNetwork.
	around map[int]int
}

// networkFamily has the networks of IPv4 or IPv6, each by its first bits and its length.
type networkFamily[K comparable] struct {
	lengths []int // ascending
	// entries has for each network, and for each mark, the longest network that contains it: itself, for a network.
	entries map[K]int
}

// noNetwork is the entry of a mark that no network contains.
const noNetwork = -1

// firstBits gives the first bits of an address with their number.
type firstBits[K comparable] interface{ first(bits int) K }

type ipv4 uint32

func (ip ipv4) first(bits int) uint64 { return uint64(ip)>>(32-bits)<<(40-bits) | uint64(bits) }

type ipv6 struct{ high, low uint64 }

func (ip ipv6) first(bits int) [3]uint64 {
	high, low := 64-min(bits, 64), 128-max(bits, 64) // the bits to clear
	return [3]uint64{ip.high >> high << high, ip.low >> low << low, uint64(bits)}
}

func newIPv4(ip netip.Addr) ipv4 {
	bytes := ip.As4()
	return ipv4(binary.BigEndian.Uint32(bytes[:]))
}

func newIPv6(ip netip.Addr) ipv6 {
	bytes := ip.As16()
	return ipv6{binary.BigEndian.Uint64(bytes[:8]), binary.BigEndian.Uint64(bytes[8:])}
}

// newNetworkIndex indexes networks, which are masked. The numbers are positions in the caller's list.
func newNetworkIndex(numbers map[netip.Prefix]int) networkIndex {
	n := networkIndex{around: map[int]int{}}
	all := make([]netip.Prefix, 0, len(numbers))
	for p := range numbers {
		all = append(all, p)
	}
	// A network comes after those that contain it, so that its marks have their numbers.
	slices.SortFunc(all, func(a, b netip.Prefix) int { return cmp.Compare(a.Bits(), b.Bits()) })
	for _, p := range all {
		lengths := &n.v4.lengths
		if p.Addr().Is6() {
			lengths = &n.v6.lengths
		}
		if last := len(*lengths) - 1; last < 0 || (*lengths)[last] != p.Bits() {
			*lengths = append(*lengths, p.Bits())
		}
	}
	n.v4.entries, n.v6.entries = make(map[uint64]int, len(all)), map[[3]uint64]int{}
	for _, p := range all {
		n.around[numbers[p]] = n.find(p)
		if ip := p.Addr(); ip.Is4() {
			addNetwork(&n.v4, newIPv4(ip), p.Bits(), numbers[p])
		} else {
			addNetwork(&n.v6, newIPv6(ip), p.Bits(), numbers[p])
		}
	}
	return n
}

// addNetwork adds a network, and its marks on the way of the search. All networks that are not longer than a mark are there already.
func addNetwork[K comparable, A firstBits[K]](f *networkFamily[K], ip A, bits, number int) {
	for from, to := 0, len(f.lengths); from < to; {
		middle := int(uint(from+to) / 2)
		at := f.lengths[middle]
		if at > bits {
			to = middle
			continue
		}
		if _, known := f.entries[ip.first(at)]; !known && at < bits {
			f.entries[ip.first(at)] = findNetwork(f, ip, at)
		}
		from = middle + 1
	}
	f.entries[ip.first(bits)] = number
}

// find returns the number of the longest network that contains another one, or noNetwork.
func (n *networkIndex) find(network netip.Prefix) int {
	if ip := network.Addr(); ip.Is4() {
		return findNetwork(&n.v4, newIPv4(ip), network.Bits())
	}
	return findNetwork(&n.v6, newIPv6(network.Addr()), network.Bits())
}

func findNetwork[K comparable, A firstBits[K]](f *networkFamily[K], ip A, bits int) int {
	best := noNetwork
	for from, to := 0, len(f.lengths); from < to; {
		middle := int(uint(from+to) / 2)
		at := f.lengths[middle]
		if at > bits {
			to = middle
			continue
		}
		number, known := f.entries[ip.first(at)]
		if !known {
			to = middle
			continue
		}
		best, from = number, middle+1
	}
	return best
}
