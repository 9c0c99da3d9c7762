package rule

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"slices"
)

// networkTable finds the networks of an address. It is a trie that reads six bits of the address at each step, until one network is left:
// at most 6 steps for IPv4 and 22 for IPv6. Most addresses need one to three, for ten networks and for 10,000. A node takes 24 bytes:
// poptrie of Asai and Ohara, SIGCOMM 2015.
type networkTable struct {
	nodes  []trieNode // The first two are the roots of IPv4 and of IPv6.
	leaves []int32    // positions of networks, or -1; from -2 downwards those of tails
	tails  []trieTail
	// wider has, for each network, the position of the narrowest other network that contains it, or -1.
	wider []int32
}

// trieNode has 64 slots. A slot is a child or a leaf.
type trieNode struct {
	children  uint64 // the slots with a child
	leaves    uint64 // the slots at which a series of equal leaves begins, without the children in between
	firstNode uint32 // the first child in networkTable.nodes
	firstLeaf uint32 // the first leaf in networkTable.leaves
}

// trieTail is the only network of a slot that is longer than the bits up to there.
type trieTail struct {
	high, low uint64 // its bits
	bits      int32
	position  int32
	otherwise int32 // the leaf of an address that is not in the network
}

const (
	trieBits  = 6 // of an address, for each node
	trieSlots = 1 << trieBits
)

// trieNetwork is a network with its position.
type trieNetwork struct {
	network  netip.Prefix
	high     uint64 // the bits of the address, from the left
	low      uint64
	position int32
}

// newNetworkTable makes the table of networks without duplicates, in which addresses of IPv4 are not mapped to IPv6.
func newNetworkTable(networks []netip.Prefix) *networkTable {
	t := &networkTable{nodes: make([]trieNode, 2), wider: make([]int32, len(networks))}
	var four, six []trieNetwork
	for i, network := range networks {
		n := trieNetwork{network: network, position: int32(i)}
		if n.high, n.low = addressBits(network.Addr()); network.Addr().Is4() {
			four = append(four, n)
		} else {
			six = append(six, n)
		}
	}
	t.fill(0, four, 0, -1)
	t.fill(1, six, 0, -1)
	return t
}

// addressBits returns the bits of an address, with those of IPv4 at the left end.
func addressBits(ip netip.Addr) (high, low uint64) {
	if ip.Is4() {
		four := ip.As4()
		return uint64(binary.BigEndian.Uint32(four[:])) << 32, 0
	}
	sixteen := ip.As16()
	return binary.BigEndian.Uint64(sixteen[:8]), binary.BigEndian.Uint64(sixteen[8:])
}

// slotAt returns six bits from a depth on. Bits beyond the address are 0.
func (n *trieNetwork) slotAt(depth int) int {
	high := n.high << depth // 0 for a depth of 64 and more
	if depth < 64 {
		high |= n.low >> (64 - depth)
	} else {
		high = n.low << (depth - 64)
	}
	return int(high >> (64 - trieBits))
}

// fill fills a node with the networks of its addresses, which are longer than depth; only those of a root may have the length 0.
// inherited is the narrowest network that contains all of them.
func (t *networkTable) fill(node int, networks []trieNetwork, depth int, inherited int32) {
	var slots [trieSlots]int32
	for i := range slots {
		slots[i] = inherited
	}
	// Networks that end in this node, the wide ones first: narrower ones replace them.
	slices.SortFunc(networks, func(a, b trieNetwork) int {
		return cmp.Or(cmp.Compare(a.network.Bits(), b.network.Bits()), a.network.Addr().Compare(b.network.Addr()))
	})
	end := depth + trieBits
	longer := len(networks)
	for i := range networks {
		n := &networks[i]
		if n.network.Bits() > end {
			longer = i
			break
		}
		from := n.slotAt(depth)
		t.wider[n.position] = slots[from]
		for slot := from; slot < from+1<<(end-n.network.Bits()); slot++ {
			slots[slot] = n.position
		}
	}
	var below [trieSlots][]trieNetwork
	for _, n := range networks[longer:] {
		slot := n.slotAt(depth)
		below[slot] = append(below[slot], n)
	}
	for slot := range below {
		if len(below[slot]) == 1 {
			n := &below[slot][0]
			t.wider[n.position], below[slot] = slots[slot], nil
			t.tails = append(t.tails, trieTail{n.high, n.low, int32(n.network.Bits()), n.position, slots[slot]})
			slots[slot] = -int32(len(t.tails)) - 1
		}
	}
	t.write(node, &slots, &below)
	first := int(t.nodes[node].firstNode)
	for slot := range below {
		if len(below[slot]) > 0 {
			t.fill(first, below[slot], end, slots[slot])
			first++
		}
	}
}

// write writes the slots of a node, and makes room for its children.
func (t *networkTable) write(node int, slots *[trieSlots]int32, below *[trieSlots][]trieNetwork) {
	n := trieNode{firstNode: uint32(len(t.nodes)), firstLeaf: uint32(len(t.leaves))}
	last := int32(math.MinInt32) // No leaf has this value.
	for slot := range slots {
		switch {
		case len(below[slot]) > 0:
			n.children |= 1 << slot
			t.nodes = append(t.nodes, trieNode{})
		case slots[slot] != last:
			n.leaves |= 1 << slot
			last = slots[slot]
			t.leaves = append(t.leaves, last)
		}
	}
	t.nodes[node] = n
}

// narrowest returns the position of the narrowest network that contains an address, or -1. It allocates nothing.
func (t *networkTable) narrowest(ip netip.Addr) int32 {
	if !ip.IsValid() {
		return -1
	}
	ip = ip.Unmap()
	high, low := addressBits(ip)
	rest, after := high, low
	node := &t.nodes[0]
	if !ip.Is4() {
		node = &t.nodes[1]
	}
	for {
		bit := uint64(1) << (rest >> (64 - trieBits))
		if node.children&bit == 0 {
			leaf := t.leaves[int(node.firstLeaf)+bits.OnesCount64(node.leaves&(bit<<1-1))-1]
			if leaf < -1 {
				return t.tails[-leaf-2].leaf(high, low)
			}
			return leaf
		}
		node = &t.nodes[int(node.firstNode)+bits.OnesCount64(node.children&(bit-1))]
		rest, after = rest<<trieBits|after>>(64-trieBits), after<<trieBits
	}
}

// leaf returns the leaf of an address.
func (t *trieTail) leaf(high, low uint64) int32 {
	differs := high ^ t.high
	if t.bits > 64 {
		differs |= (low ^ t.low) >> (128 - t.bits)
	} else {
		differs >>= 64 - t.bits
	}
	if differs != 0 {
		return t.otherwise
	}
	return t.position
}
