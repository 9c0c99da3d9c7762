package memory

import (
	"math/bits"
	"sync"
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
	// orders has an entry for each smallest block: 0 when no free block begins there, and
	// n when a free block of order n-1 does.
	orders []uint8
	// heads are the free lists, one for each order. An entry is a word offset + 1.
	heads [48]uint64
	lent  int64
}

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
	return regionBytes(words, 8) + regionBytes(words/minBlock, 1)
}

func newBlocks(r *region, words int) *blocks {
	n := uint64(words)
	b := &blocks{words: cut[int64](r, words), orders: cut[uint8](r, words/minBlock)}
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
	b.lent += minBlock << want
	return at, true
}

// free returns a block. n is the number that lend was called with.
func (b *blocks) free(ref uint64, n int) {
	at, order := ref-1, orderOf(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent -= minBlock << order
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
