package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/script"
)

// slotHolder keeps the slots that requests of this process have taken. One goroutine renews them, and
// frees those of ended requests. It starts with the first slot.
type slotHolder struct {
	store   *Store
	program program
	start   sync.Once
	wake    chan struct{} // a slot was freed; capacity 1

	mu    sync.Mutex
	held  map[uint64]*heldSlot // by nonce; guarded by mu
	freed []freedSlot          // to be freed on the servers; guarded by mu
	next  time.Duration        // no slot is due before, by Store.since; guarded by mu

	// sending is held during calls that renew or free, so that they arrive in this order.
	sending sync.Mutex
}

// heldSlot is a slot of a request in flight.
type heldSlot struct {
	place script.Place
	ttl   time.Duration
	// renewed is when the last successful call for the slot began, by Store.since.
	renewed time.Duration
}

type freedSlot struct {
	place script.Place
	nonce uint64
}

const (
	// maxFreed bounds the slots that wait to be freed. Further ones expire on the servers.
	maxFreed = 1 << 16
	// slotCalls bounds the calls of one pipeline.
	slotCalls = 256
	// slotPipelines bounds the pipelines at a time. A node that does not answer delays only its own.
	slotPipelines = 64
	// renewRetry is the pause after a failed renewal.
	renewRetry = 300 * time.Millisecond
	// renewRest is the time between two looks at the slots when none is due.
	renewRest = time.Minute
	// renewParts: a slot is renewed after this part of its TTL.
	renewParts = 3
)

func (h *slotHolder) open(s *Store) {
	h.store, h.wake, h.held, h.next = s, make(chan struct{}, 1), map[uint64]*heldSlot{}, renewRest
	h.program = newProgram(script.InFlight())
}

var _ headgate.SlotStore = (*Store)(nil)

// TakeSlot implements headgate.SlotStore, in one round trip. The Decision has no At. If the node's breaker
// is open, TakeSlot gives an error at once: only decisions probe such a node.
func (s *Store) TakeSlot(ctx context.Context, op headgate.SlotOp) (headgate.Decision, error) {
	if !s.made() {
		return headgate.Undecided(), headgate.ErrNotMade
	}
	place := script.PlaceOf(op.Key, op.Window)
	if err := s.awayAt(place); err != nil {
		return headgate.Undecided(), err
	}
	if op.Peek {
		return s.peekSlots(ctx, place, op.Limit)
	}
	slot, nonce := &heldSlot{place: place, ttl: op.TTL, renewed: s.since()}, s.nonce()
	keys, args := script.InFlightCall(s.names, place, script.TakeSlot, op.TTL, op.Limit, []uint64{nonce}, s.now(), s.slack)
	reply := new(int64) // The goroutine of a cancelled call may still write to reply.
	if err := s.runAll(ctx, &s.slots.program, []call{{keys, args, reply}}, "take a slot"); err != nil {
		s.slots.free(freedSlot{place, nonce}) // The server may have given it.
		return headgate.Undecided(), err
	}
	taken, mine := script.SlotTaken(*reply)
	d := headgate.Decision{Reason: headgate.WithinLimit, Limit: op.Limit, Remaining: max(0, op.Limit-taken)}
	if !mine {
		d.Verdict, d.Reason = headgate.Deny, headgate.InFlight
		return d, nil
	}
	s.slots.hold(nonce, slot)
	d.Receipt = headgate.Receipt{Nonce: nonce, Place: place.Words(), Cost: 1}
	return d, nil
}

// peekSlots reads the number of taken slots.
func (s *Store) peekSlots(ctx context.Context, at script.Place, limit int64) (headgate.Decision, error) {
	keys, args := script.InFlightCall(s.names, at, script.PeekSlots, 0, limit, nil, s.now(), s.slack)
	reply := new(int64)
	if err := s.runAll(ctx, &s.slots.program, []call{{keys, args, reply}}, "read slots"); err != nil {
		return headgate.Undecided(), err
	}
	taken, _ := script.SlotTaken(*reply)
	d := headgate.Decision{Reason: headgate.WithinLimit, Limit: limit, Remaining: max(0, limit-taken)}
	if d.Remaining == 0 {
		d.Verdict, d.Reason = headgate.Deny, headgate.InFlight
	}
	return d, nil
}

// FreeSlot implements headgate.SlotStore. A goroutine frees the slot on the server. If the server does
// not answer, the slot is free after its TTL.
func (s *Store) FreeSlot(r headgate.Receipt) {
	if s.made() && !r.Empty() {
		s.slots.free(freedSlot{script.PlaceIn(r.Place), r.Nonce})
	}
}

func (h *slotHolder) hold(nonce uint64, slot *heldSlot) {
	due := slot.renewed + slot.ttl/renewParts
	h.mu.Lock()
	h.held[nonce] = slot
	sooner := due < h.next
	h.next = min(h.next, due)
	h.mu.Unlock()
	h.start.Do(func() { h.store.link.running.Go(h.run) })
	if sooner {
		h.rouse()
	}
}

func (h *slotHolder) free(slot freedSlot) {
	h.mu.Lock()
	delete(h.held, slot.nonce)
	if len(h.freed) < maxFreed {
		h.freed = append(h.freed, slot)
	}
	h.mu.Unlock()
	h.start.Do(func() { h.store.link.running.Go(h.run) })
	h.rouse()
}

func (h *slotHolder) rouse() {
	select {
	case h.wake <- struct{}{}:
	default: // The goroutine looks at the slots soon.
	}
}

// run renews and frees slots until the store is closed.
func (h *slotHolder) run() {
	timer := time.NewTimer(renewRest)
	defer timer.Stop()
	for {
		select {
		case <-h.store.link.life.Done():
			return
		case <-h.wake:
		case <-timer.C:
		}
		h.sendFreed()
		if h.untilDue() <= 0 {
			h.renew()
		}
		timer.Reset(h.untilDue())
	}
}

// untilDue gives the time until a slot may be due.
func (h *slotHolder) untilDue() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next - h.store.since()
}

// close frees the slots of ended requests on the servers, within closePatience. The others expire.
func (h *slotHolder) close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.sendFreed()
	}()
	select {
	case <-done:
	case <-time.After(closePatience):
	}
}

// sendFreed frees slots on the servers. Those of a failed call expire.
func (h *slotHolder) sendFreed() {
	h.sending.Lock()
	defer h.sending.Unlock()
	h.mu.Lock()
	freed := h.freed
	h.freed = nil
	h.mu.Unlock()
	byPlace := map[script.Place][]uint64{}
	for _, slot := range freed {
		byPlace[slot.place] = append(byPlace[slot.place], slot.nonce)
	}
	var calls []call
	for place, nonces := range byPlace {
		calls = h.appendCalls(calls, place, script.FreeSlots, 0, nonces)
	}
	_ = h.send(calls)
}

// renewal is the slots of one key and one TTL.
type renewal struct {
	place script.Place
	ttl   time.Duration
}

// renew renews the slots that are due.
func (h *slotHolder) renew() {
	h.sending.Lock()
	defer h.sending.Unlock()
	now := h.store.since()
	due := h.due(now)
	var calls []call
	for renewal, nonces := range due {
		calls = h.appendCalls(calls, renewal.place, script.RenewSlots, renewal.ttl, nonces)
	}
	err := h.send(calls)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.next = min(h.next, h.store.since()+renewRetry)
		return
	}
	for renewal, nonces := range due {
		h.next = min(h.next, now+renewal.ttl/renewParts)
		for _, nonce := range nonces {
			if slot := h.held[nonce]; slot != nil {
				slot.renewed = now
			}
		}
	}
}

// due gives the slots to renew now, and sets next for the others.
func (h *slotHolder) due(now time.Duration) map[renewal][]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := map[renewal][]uint64{}
	h.next = now + renewRest
	for nonce, slot := range h.held {
		if at := slot.renewed + slot.ttl/renewParts; at > now {
			h.next = min(h.next, at)
			continue
		}
		renewal := renewal{slot.place, slot.ttl}
		due[renewal] = append(due[renewal], nonce)
	}
	return due
}

// appendCalls adds the calls for slots of one place.
func (h *slotHolder) appendCalls(calls []call, at script.Place, do script.InFlightAction, ttl time.Duration, nonces []uint64) []call {
	s := h.store
	for len(nonces) > 0 {
		some := nonces[:min(len(nonces), script.MaxInFlight)]
		nonces = nonces[len(some):]
		keys, args := script.InFlightCall(s.names, at, do, ttl, 0, some, s.now(), s.slack)
		calls = append(calls, call{keys: keys, args: args})
	}
	return calls
}

// send runs calls in pipelines, and gives an error if one of them fails.
func (h *slotHolder) send(calls []call) error {
	var (
		all   sync.WaitGroup
		first error
		mu    sync.Mutex // guards first
		busy  = make(chan struct{}, slotPipelines)
	)
	for some := range slices.Chunk(calls, slotCalls) {
		busy <- struct{}{}
		all.Go(func() {
			err := h.store.runAll(context.Background(), &h.program, some, "renew or free slots")
			<-busy
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				first = err
			}
		})
	}
	all.Wait()
	return first
}
