package lease

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/lease/election"
	"github.com/headgate/headgate/internal/lease/state"
)

const (
	// markPause is the time between two writes of marks: at most 10 transactions a second, of 100 marks each.
	markPause = 100 * time.Millisecond
	// maxStored bounds the marks in etcd: those of this master, those of the earlier one, and as many that wait for their deletion.
	// Beyond, the first mark of a resource waits.
	maxStored = 3 * state.MaxResources
)

// marks writes the marks of a master to etcd, one transaction after another. Of several marks of a resource, the last one is
// written. The memory is bounded by the resources of the state machine and by maxStored, also when resources come and go faster than
// their marks are written.
type marks struct {
	election *election.Election
	granted  *Granted
	wake     chan struct{} // has room for one

	mu      sync.Mutex // Guards the fields below.
	term    uint64
	waiting map[string]int64
	stored  map[string]struct{} // marks that etcd may have
}

func newMarks(e *election.Election, parent *Granted) *marks {
	return &marks{election: e, granted: parent, wake: make(chan struct{}, 1), waiting: map[string]int64{}, stored: map[string]struct{}{}}
}

// begin drops the marks of earlier terms, and reads those in etcd. They are nil if etcd does not answer.
func (m *marks) begin(term uint64) map[string]int64 {
	m.mu.Lock()
	m.term = term
	clear(m.waiting)
	clear(m.stored)
	m.mu.Unlock()
	all, err := m.election.Marks(context.Background()) // Each of its calls has a timeout.
	if err != nil {
		m.granted.log.Warn("the marks of the earlier master are not known: its leases count with the capacities", "error", err)
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range all {
		m.stored[name] = struct{}{}
	}
	return all
}

// put queues marks. The caller holds the lock of the service.
func (m *marks) put(term uint64, all []state.Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if term != m.term {
		return
	}
	for _, one := range all {
		m.waiting[one.Resource] = one.Amount
		if _, stored := m.stored[one.Resource]; one.Amount == state.NoMark && !stored {
			delete(m.waiting, one.Resource) // There is nothing to delete.
		}
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take takes marks for one write. Leases wait for marks, and nothing waits for a deletion: a master that deletes the marks of 10,000
// resources needs 10 s.
func (m *marks) take() (term uint64, batch map[string]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	batch = make(map[string]int64, min(len(m.waiting), election.MaxWrite))
	for _, deleted := range []bool{false, true} {
		for name, amount := range m.waiting {
			if len(batch) == election.MaxWrite {
				break
			}
			if deleted == (amount == state.NoMark) && (deleted || m.fits(name)) {
				batch[name] = amount
				delete(m.waiting, name)
			}
		}
	}
	return m.term, batch
}

// fits reports whether a mark may be written, and notes that etcd may have it. The caller holds mu.
func (m *marks) fits(name string) bool {
	if _, stored := m.stored[name]; !stored && len(m.stored) >= maxStored {
		return false
	}
	m.stored[name] = struct{}{}
	return true
}

// done notes which marks a write has deleted.
func (m *marks) done(term uint64, batch map[string]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, amount := range batch {
		if amount == state.NoMark && term == m.term {
			delete(m.stored, name)
		}
	}
}

// back queues marks again whose write has failed, unless newer ones wait.
func (m *marks) back(term uint64, batch map[string]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if term != m.term {
		return
	}
	for name, amount := range batch {
		if _, newer := m.waiting[name]; !newer {
			m.waiting[name] = amount
		}
	}
}

// run writes marks until ctx ends.
func (m *marks) run(ctx context.Context) {
	for ctx.Err() == nil {
		term, batch := m.take()
		if len(batch) == 0 {
			select {
			case <-m.wake:
			case <-ctx.Done():
			}
			continue
		}
		m.write(ctx, term, batch)
		select {
		case <-time.After(markPause):
		case <-ctx.Done():
		}
	}
}

// write writes marks of a term, and tells the state machine.
func (m *marks) write(ctx context.Context, term uint64, batch map[string]int64) {
	switch err := m.election.Write(ctx, term, batch); {
	case election.IsLost(err): // The next term begins again.
	case err != nil:
		m.back(term, batch)
	default:
		m.done(term, batch)
		stored := make([]state.Mark, 0, len(batch))
		for name, amount := range batch {
			stored = append(stored, state.Mark{Resource: name, Amount: amount})
		}
		m.granted.service.Stored(term, stored)
	}
}
