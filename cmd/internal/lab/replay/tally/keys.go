package tally

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/headgate/headgate"
)

// MaxBytes is the memory for the counts by key.
const MaxBytes = 96 << 20

// keyBytes is about what a key takes beside its text and its peaks: the Key, and its place in the map at half of the map's load.
const keyBytes = 176

// Keys counts the requests of keys. When the counts take more than their memory, half of the keys go, by their hashes, so that the rest
// stays a fair sample. One goroutine uses Keys.
type Keys struct {
	most, bytes int64
	level       int // a key stays if the first level bits of its hash are 0
	all         map[uint64]*Key
	// latest has the key that Find found last for each of some owners: many requests in a row have one key, above all that of all clients.
	latest [8]*Key
}

// Key has the counts of one key.
type Key struct {
	Hash uint64
	// Owner is the number of the rule of the key, and Text the key as the rule made it.
	Owner int
	Text  string
	// Requests are those that the rule decided, and Refused those of them that the rule refused.
	Requests, Refused int64
	// First is the time of the first refusal.
	First headgate.Instant
	// Marks has a bit for each candidate that refused the key.
	Marks uint64

	peaks []Peak
}

// NewKeys returns Keys with a bound of their memory; 0 is MaxBytes.
func NewKeys(most int64) *Keys {
	return &Keys{most: cmp.Or(most, MaxBytes), all: map[uint64]*Key{}}
}

// hashOf hashes an owner and a key.
func hashOf(owner int, text []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(owner) + 1)
	_, _ = d.Write(text)
	return d.Sum64()
}

// Find returns the counts of a key, or nil if the key is not in the sample. peaks is the number of limits whose peaks Rise follows.
func (k *Keys) Find(owner int, text []byte, peaks int) *Key {
	latest := &k.latest[uint(owner)%uint(len(k.latest))]
	if l := *latest; l != nil && l.Owner == owner && l.Text == string(text) {
		return l
	}
	found := k.find(owner, text, peaks)
	*latest = found
	return found
}

// find is Find without the latest keys.
func (k *Keys) find(owner int, text []byte, peaks int) *Key {
	h := hashOf(owner, text)
	if bits.LeadingZeros64(h) < k.level {
		return nil
	}
	if found := k.all[h]; found != nil {
		return found
	}
	if k.bytes > k.most {
		k.halve()
		if bits.LeadingZeros64(h) < k.level {
			return nil
		}
	}
	found := &Key{Hash: h, Owner: owner, Text: string(text)}
	if peaks > 0 {
		found.peaks = make([]Peak, peaks)
	}
	k.bytes += keyBytes + int64(len(text)) + int64(peaks)*peakBytes
	k.all[h] = found
	return found
}

// halve drops half of the keys, until the rest takes at most half of the memory.
func (k *Keys) halve() {
	for k.bytes > k.most/2 && len(k.all) > 0 {
		k.level++
		kept := make(map[uint64]*Key, len(k.all)/2)
		k.bytes = 0
		for h, key := range k.all {
			if bits.LeadingZeros64(h) < k.level {
				continue
			}
			kept[h] = key
			k.bytes += keyBytes + int64(len(key.Text)) + int64(len(key.peaks))*peakBytes
			for i := range key.peaks {
				k.bytes += int64(cap(key.peaks[i].ticks)) * tickBytes
			}
		}
		k.all = kept
		clear(k.latest[:])
	}
}

// Rise adds units to the peak of one limit of a key.
func (k *Keys) Rise(key *Key, limit int, at headgate.Instant, per time.Duration, units int64) {
	k.bytes += int64(key.peaks[limit].add(at, per, units)) * tickBytes
}

// Peak returns the most units of a key in any window of a limit, or -1 if Rise was never called for them.
func (key *Key) Peak(limit int) int64 {
	if key.peaks[limit].ticks == nil {
		return -1
	}
	return key.peaks[limit].most
}

// Sample returns the part of the keys that is counted: one of Sample keys. It is 1 if all keys are.
func (k *Keys) Sample() int64 { return 1 << k.level }

// Of lists the keys of an owner in the order of their texts.
func (k *Keys) Of(owner int) []*Key {
	var list []*Key
	for _, key := range k.all {
		if key.Owner == owner {
			list = append(list, key)
		}
	}
	slices.SortFunc(list, func(a, b *Key) int { return cmp.Compare(a.Text, b.Text) })
	return list
}
