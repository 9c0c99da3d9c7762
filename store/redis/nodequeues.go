package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/store/breaker"
)

// slots is the number of hash slots of a cluster.
const slots = 1 << 14

// nodeQueues has a queue for each node. For a cluster, it tracks which master has which slot, for
// batches and breakers. The client itself routes each call, and follows redirections.
type nodeQueues struct {
	store *Store
	pool  queries
	works sync.Pool
	// only is the queue for all slots. It is used without a cluster, and before a cluster's slots are
	// known.
	only *nodeQueue
	// table has the queue of each slot; a nil pointer or entry means only.
	table atomic.Pointer[[slots]*nodeQueue]

	mu   sync.Mutex
	all  map[string]*nodeQueue // queues by address of their node; guarded by mu
	met  map[string]bool       // addresses of nodes, past and present, up to maxMet; guarded by mu
	look chan struct{}         // requests a read of the slots; capacity 1

	// apart has the slots that currently need separate calls.
	apart separateSlots
}

func (l *nodeQueues) open(s *Store) {
	l.store, l.look = s, make(chan struct{}, 1)
	l.all, l.met = make(map[string]*nodeQueue), make(map[string]bool)
	name := s.config.Client.InitAddress[0]
	if s.config.Kind == Sentinel {
		name = s.config.Client.Sentinel.MasterSet
	}
	l.only = l.newQueue(name)
}

func (l *nodeQueues) newQueue(node string) *nodeQueue {
	return &nodeQueue{store: l.store, node: node, breaker: breaker.New(l.store.config.Breaker)}
}

// queue gives the queue of a slot.
func (l *nodeQueues) queue(slot uint16) *nodeQueue {
	if table := l.table.Load(); table != nil {
		if queue := table[slot&(slots-1)]; queue != nil {
			return queue
		}
	}
	return l.only
}

func (l *nodeQueues) getWork() *work {
	if w, ok := l.works.Get().(*work); ok {
		return w
	}
	return &work{}
}

func (l *nodeQueues) putWork(w *work) {
	w.reset()
	l.works.Put(w)
}

// list gives the queues that are in use, sorted by address.
func (l *nodeQueues) list() []*nodeQueue {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return []*nodeQueue{l.only}
	}
	all := make([]*nodeQueue, 0, len(l.all))
	for _, queue := range l.all {
		all = append(all, queue)
	}
	slices.SortFunc(all, func(a, b *nodeQueue) int {
		if a.node < b.node {
			return -1
		}
		return 1
	})
	return all
}

// noticed requests a read of the slots. It is called after failed calls.
func (l *nodeQueues) noticed() {
	select {
	case l.look <- struct{}{}:
	default:
	}
}

// maxMet bounds the addresses in nodeQueues.met.
const maxMet = 4096

// isNode reports whether an address belongs, or belonged, to a node.
func (l *nodeQueues) isNode(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.met[address]
}

// alarm stops callers from sending inline until calls are answered again.
func (l *nodeQueues) alarm() {
	l.only.healthy.Store(false)
	for _, queue := range l.list() {
		queue.healthy.Store(false)
	}
}

// The slots are read every lookEvery, and after failed calls, but at most once every lookAfter. A
// node has lookLimit to answer.
const (
	lookEvery = time.Second
	lookAfter = 100 * time.Millisecond
	lookLimit = 500 * time.Millisecond
)

// follow keeps the table of slots current until ctx ends.
func (l *nodeQueues) follow(ctx context.Context, client rueidis.Client) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		l.refresh(ctx, client)
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAfter):
		}
		select {
		case <-ctx.Done():
			return
		case <-l.look:
		case <-every.C:
		}
	}
}

// refresh reads CLUSTER SLOTS from the nodes in turn, until a node gives a valid answer.
func (l *nodeQueues) refresh(ctx context.Context, client rueidis.Client) {
	nodes := client.Nodes()
	for _, node := range nodes {
		bounded, cancel := context.WithTimeout(ctx, lookLimit)
		ranges, err := node.Do(bounded, node.B().ClusterSlots().Build()).ToArray()
		cancel()
		if err != nil {
			continue
		}
		if table, err := l.read(ranges); err == nil {
			l.table.Store(table)
			l.reach(nodes)
			return
		}
	}
}

// read makes the table from the answer to CLUSTER SLOTS. Each range has its first and last slot, and
// then its nodes, the master first.
func (l *nodeQueues) read(ranges []rueidis.RedisMessage) (*[slots]*nodeQueue, error) {
	var table [slots]*nodeQueue
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := make(map[string]*nodeQueue)
	for i := range ranges {
		first, last, node, err := readRange(&ranges[i])
		if err != nil {
			return nil, err
		}
		queue := seen[node]
		if queue == nil {
			if queue = l.all[node]; queue == nil {
				queue = l.newQueue(node)
			}
			seen[node] = queue
			if len(l.met) < maxMet {
				l.met[node] = true
			}
		}
		for slot := first; slot <= last; slot++ {
			table[slot] = queue
		}
	}
	for node, queue := range l.all {
		if seen[node] == nil && queue.breaker.State() != breaker.Closed {
			l.store.tell(Change{Node: node, State: breaker.Closed, Gone: true})
		}
	}
	l.all = seen
	return &table, nil
}

func readRange(m *rueidis.RedisMessage) (first, last int64, node string, err error) {
	fields, err := m.ToArray()
	if err != nil {
		return 0, 0, "", fmt.Errorf("redis: CLUSTER SLOTS: %w", err)
	}
	if len(fields) < 3 {
		return 0, 0, "", fmt.Errorf("redis: CLUSTER SLOTS: a range has %d fields, want at least 3", len(fields))
	}
	if first, err = fields[0].AsInt64(); err != nil {
		return 0, 0, "", err
	}
	if last, err = fields[1].AsInt64(); err != nil {
		return 0, 0, "", err
	}
	if first < 0 || last >= slots {
		return 0, 0, "", fmt.Errorf("redis: CLUSTER SLOTS: slots %d to %d are not within the %d slots of a cluster", first, last, slots)
	}
	master, err := fields[2].ToArray()
	if err != nil || len(master) < 2 {
		return 0, 0, "", fmt.Errorf("redis: CLUSTER SLOTS: a node has %d fields, want at least 2: %w", len(master), err)
	}
	host, err := master[0].ToString()
	if err != nil {
		return 0, 0, "", err
	}
	port, err := master[1].AsInt64()
	if err != nil {
		return 0, 0, "", err
	}
	return first, last, fmt.Sprintf("%s:%d", host, port), nil
}
