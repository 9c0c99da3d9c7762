package decisions

import (
	"time"

	"github.com/headgate/headgate/guard"
)

// takeReceipts takes what the message gives back, and begins the receipts of its own requests.
func (x *stream) takeReceipts(c *call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(c.returns) > 0 {
		x.takeBack(c, time.Now())
	}
	if c.n > 0 {
		x.makeRoom()
		c.number = x.kept.begin()
	}
}

// takeBack takes what the message gives back. The caller holds mu.
func (x *stream) takeBack(c *call, now time.Time) {
	for _, p := range c.returns {
		if taken, found := x.kept.take(p.message, p.index, now); found {
			c.taken = append(c.taken, taken)
		} else {
			x.service.stats.unknown.Add(1)
		}
	}
	x.service.receipts.Add(-int64(len(c.taken)))
}

// makeRoom makes room for the receipts of another message. Without memory, it drops those of the oldest message.
func (x *stream) makeRoom() {
	defer x.count()
	if !x.kept.full() {
		return
	}
	length := len(x.kept.ring)
	if x.reserve(int64(length) * segmentBytes) {
		x.kept.resize(2 * length)
		return
	}
	dropped := x.kept.drop()
	x.service.receipts.Add(-int64(dropped))
	x.service.stats.dropped.Add(uint64(dropped))
}

// reserve reserves memory for receipts until the next count, unless all streams have too much.
func (x *stream) reserve(bytes int64) bool {
	s := x.service
	if s.bytes.Add(bytes) > s.most {
		s.bytes.Add(-bytes)
		return false
	}
	x.bytes += bytes
	x.account.Keep(bytes)
	return true
}

// reserveReceipts counts n more receipts, unless all streams have too many.
func (s *Service) reserveReceipts(n int) bool {
	for {
		now := s.receipts.Load()
		if now+int64(n) > s.mostReceipts {
			return false
		}
		if s.receipts.CompareAndSwap(now, now+int64(n)) {
			return true
		}
	}
}

// count counts the memory that the receipts take now. It is at most what was counted and reserved.
func (x *stream) count() {
	if now := x.kept.size(); now != x.bytes {
		x.service.bytes.Add(now - x.bytes)
		x.account.Keep(now - x.bytes)
		x.bytes = now
	}
}

// memory gives the memory for the receipts of a message.
func (x *stream) memory(n int) guard.TakenAll {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.kept.memory(n)
}

// keep keeps the receipts of a decided message. n is the number of its requests that took anything.
func (x *stream) keep(c *call, taken guard.TakenAll, n int) {
	s := x.service
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	keeps := n
	if !s.reserveReceipts(n) {
		taken, keeps = guard.TakenAll{}, 0
	} else if !x.reserve(taken.Size()) {
		s.receipts.Add(-int64(n))
		taken, keeps = guard.TakenAll{}, 0
	}
	kept := x.kept.fill(c.number, time.Now().Add(receiptTime), taken, keeps)
	dropped := x.kept.trim(maxStreamReceipts)
	x.count()
	s.receipts.Add(int64(kept - keeps - dropped))
	s.stats.dropped.Add(uint64(n - kept + dropped))
	if x.expiry == nil {
		x.expiry = time.AfterFunc(receiptTime, x.expire)
	}
}

// expire drops old receipts, and calls itself again while there are others.
func (x *stream) expire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	x.service.receipts.Add(-int64(x.kept.expire(time.Now())))
	x.count()
	if x.kept.first == x.kept.next {
		x.expiry = nil
		return
	}
	x.expiry.Reset(receiptTime / 4)
}
