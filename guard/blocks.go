package guard

import (
	"maps"
	"slices"
)

// blockSize is the number of entries that a change of one of them copies.
const blockSize = 32

// blocks is a list whose copies share what does not change. A copy may change until it is copied: then both are immutable,
// and safe for concurrent use.
type blocks[T any] struct {
	parts []*[blockSize]T
	own   []bool // the parts that no other list has
	n     int
}

// copied gives a list that may change. It costs time for each block.
func (b *blocks[T]) copied() blocks[T] {
	return blocks[T]{parts: slices.Clone(b.parts), own: make([]bool, len(b.parts)), n: b.n}
}

// at gives entry n, to read.
func (b *blocks[T]) at(n uint32) *T { return &b.parts[n/blockSize][n%blockSize] }

// change gives entry n, to write. The pointer is valid until the list is copied.
func (b *blocks[T]) change(n uint32) *T {
	i := n / blockSize
	if !b.own[i] {
		part := *b.parts[i]
		b.parts[i], b.own[i] = &part, true
	}
	return &b.parts[i][n%blockSize]
}

// add appends an entry, and gives its number.
func (b *blocks[T]) add(v T) uint32 {
	n := uint32(b.n)
	if b.n%blockSize == 0 {
		b.parts, b.own = append(b.parts, new([blockSize]T)), append(b.own, true)
	}
	b.n++
	*b.change(n) = v
	return n
}

// resize makes the list n entries long. New entries are zero.
func (b *blocks[T]) resize(n int) {
	var zero T
	for b.n < n {
		b.add(zero)
	}
	for b.n > n {
		b.n--
		if *b.change(uint32(b.n)) = zero; b.n%blockSize == 0 {
			b.parts, b.own = b.parts[:len(b.parts)-1], b.own[:len(b.own)-1]
		}
	}
}

// sharesPart reports whether both have the same part i.
func (b *blocks[T]) sharesPart(other *blocks[T], i int) bool {
	return i < len(b.parts) && i < len(other.parts) && b.parts[i] == other.parts[i]
}

// numberShards divides numbers, so that a change copies only a few of them.
const numberShards = 256

// numbers has numbers by keys. Copies share what does not change, as those of blocks do.
type numbers struct {
	shards []map[textKey]uint32 // by the first byte of the key
	own    [numberShards]bool   // the shards that no other numbers have
}

func (m *numbers) copied() numbers { return numbers{shards: slices.Clone(m.shards)} }

func (m *numbers) get(key textKey) (n uint32, known bool) {
	if m.shards == nil {
		return 0, false
	}
	n, known = m.shards[key[0]][key]
	return n, known
}

func (m *numbers) set(key textKey, n uint32) { m.change(key)[key] = n }

func (m *numbers) remove(key textKey) { delete(m.change(key), key) }

// change gives the shard of a key, to write.
func (m *numbers) change(key textKey) map[textKey]uint32 {
	if m.shards == nil {
		m.shards = make([]map[textKey]uint32, numberShards)
	}
	i := key[0]
	if m.own[i] {
		return m.shards[i]
	}
	m.own[i] = true
	if m.shards[i] = maps.Clone(m.shards[i]); m.shards[i] == nil {
		m.shards[i] = map[textKey]uint32{}
	}
	return m.shards[i]
}
