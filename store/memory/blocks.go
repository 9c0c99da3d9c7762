package memory

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// blocks allocates runs of words from one fixed array, for states that are larger than a
// place. The allocator is a buddy allocator: block sizes are powers of two, and a freed
// block joins its free neighbour. So fragmentation stays bounded.
//
// lend and free take a lock. The words of a block are guarded by the lock of the shard
// that the block was lent to.
type blocks struct {
	mu    sync.Mutex
	words []int64
	// orders has an entry for each smallest block: 0 when no block begins there, n when a free
	// block of order n-1 does, and lentBlock + n for a lent one.
	orders []uint8
	// owners has the place that each lent block belongs to: the low 32 bits of its number. An entry
	// is a hint, written without mu. The place itself names its block.
	owners []uint32
	// heads are the free lists, one for each order. An entry is a word offset + 1.
	heads [48]uint64
	lent  int64
	// hand is the smallest block where next goes on.
	hand uint64
}

const lentBlock = 1 << 7

// minBlock is the smallest block, a cache line.
const minBlock = 8

// A free block keeps its links of the free list in its first words.
const (
	wordNext = 0
	wordPrev = 1
)

// blockWordsOf gives the number of words in an array of at most bytes bytes.
func blockWordsOf(bytes int64) int { return int(bytes/8) &^ (minBlock - 1) }

// blocksBytes gives the memory of an array of words and of its bookkeeping.
func blocksBytes(words int) int64 {
	return regionBytes(words, 8) + regionBytes(words/minBlock, 1) + regionBytes(words/minBlock, 4)
}

func newBlocks(r *region, words int) *blocks {
	n := uint64(words)
	b := &blocks{words: cut[int64](r, words), orders: cut[uint8](r, words/minBlock), owners: cut[uint32](r, words/minBlock)}
	// The array is cut into the powers of two of its length, largest first. So every block is
	// aligned to its size.
	for at := uint64(0); at < n; {
		order := bits.Len64((n-at)/minBlock) - 1
		b.push(at, order)
		at += minBlock << order
	}
	return b
}

// orderOf gives the order of the smallest block that holds n words.
func orderOf(n int) int {
	return bits.Len(uint((n+minBlock-1)/minBlock - 1))
}

// largest gives the number of words of the largest possible block.
func (b *blocks) largest() int {
	if len(b.words) == 0 {
		return 0
	}
	return minBlock << (bits.Len(uint(len(b.words)/minBlock)) - 1)
}

// lend gives a zeroed block of at least n words, as its offset + 1, or 0 when no block is
// free.
func (b *blocks) lend(n int) uint64 {
	want := orderOf(n)
	at, ok := b.carve(want)
	if !ok {
		return 0
	}
	clear(b.words[at : at+minBlock<<want])
	return at + 1
}

// carve removes a block of the order from the free lists, and splits a larger one if needed.
func (b *blocks) carve(want int) (at uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	order := want
	for order < len(b.heads) && b.heads[order] == 0 {
		order++
	}
	if order == len(b.heads) {
		return 0, false
	}
	at = b.heads[order] - 1
	b.remove(at, order)
	for order > want {
		order--
		b.push(at+minBlock<<order, order)
	}
	b.orders[at/minBlock] = lentBlock + uint8(want) + 1
	b.lent += minBlock << want
	return at, true
}

// own records the place that a lent block belongs to.
func (b *blocks) own(ref, place uint64) {
	atomic.StoreUint32(&b.owners[(ref-1)/minBlock], uint32(place)) // The low 32 bits.
}

// next gives the lent block at the hand and its owner, and moves the hand on. The hand goes round
// all blocks in the order of their addresses, so neighbours that expired are freed together and join.
// next gives 0 when a few steps find no lent block.
func (b *blocks) next() (ref uint64, owner uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range nextSteps {
		if b.hand >= uint64(len(b.orders)) {
			b.hand = 0
		}
		at := b.hand
		order := b.orders[at]
		switch {
		case order == 0: // Blocks have joined. The end of the block is at a multiple of a larger size.
			b.hand += at & -at
		case order&lentBlock == 0:
			b.hand += 1 << (order - 1)
		default:
			b.hand += 1 << (order - lentBlock - 1)
			return at*minBlock + 1, atomic.LoadUint32(&b.owners[at])
		}
	}
	return 0, 0
}

// nextSteps is more than the number of orders, so next leaves any block.
const nextSteps = 64

// free returns a block. n is the number that lend was called with.
func (b *blocks) free(ref uint64, n int) {
	at, order := ref-1, orderOf(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent -= minBlock << order
	b.orders[at/minBlock] = 0
	for {
		buddy := at ^ minBlock<<order
		if buddy/minBlock >= uint64(len(b.orders)) || b.orders[buddy/minBlock] != uint8(order)+1 {
			break
		}
		b.remove(buddy, order)
		at = min(at, buddy)
		order++
	}
	b.push(at, order)
}

// block gives the n words of a lent block.
func (b *blocks) block(ref uint64, n int) []int64 {
	return b.words[ref-1 : ref-1+uint64(minBlock<<orderOf(n))]
}

// bytesLent gives the bytes of all lent blocks.
func (b *blocks) bytesLent() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lent * 8
}

// push puts a free block at the front of its free list. The caller holds mu.
func (b *blocks) push(at uint64, order int) {
	head := b.heads[order]
	b.words[at+wordNext], b.words[at+wordPrev] = int64(head), 0
	if head != 0 {
		b.words[head-1+wordPrev] = int64(at + 1)
	}
	b.heads[order] = at + 1
	b.orders[at/minBlock] = uint8(order) + 1
}

// remove takes a free block out of its free list. The caller holds mu.
func (b *blocks) remove(at uint64, order int) {
	next, prev := b.words[at+wordNext], b.words[at+wordPrev]
	if next != 0 {
		b.words[next-1+wordPrev] = prev
	}
	if prev != 0 {
		b.words[prev-1+wordNext] = next
	} else {
		b.heads[order] = uint64(next)
	}
	b.orders[at/minBlock] = 0
}
