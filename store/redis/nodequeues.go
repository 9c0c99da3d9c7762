package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/store/breaker"
)

// slots is how many hash slots a cluster has.
const slots = 1 << 14

// nodeQueues has a queue for every node. For a cluster, it follows which master has which slot, for
// batches and breakers. The client itself routes each call, and follows redirections.
type nodeQueues struct {
	store *Store
	asks  queries
	works sync.Pool
	// only is the queue for all slots: without a cluster, and before the cluster's slots are known.
	only *nodeQueue
	// table has the queue of each slot; nil means only.
	table atomic.Pointer[[slots]*nodeQueue]

	mu   sync.Mutex
	all  map[string]*nodeQueue // by address; guarded by mu
	met  map[string]bool       // every known node, up to maxMet; guarded by mu
	look chan struct{}         // requests a read of the slots; has capacity one

	// apart has the slots that could not share a call with others.
	apart separateSlots
}

func (l *nodeQueues) open(s *Store) {
	l.store, l.look = s, make(chan struct{}, 1)
	l.all, l.met = make(map[string]*nodeQueue), make(map[string]bool)
	name := s.config.Client.InitAddress[0]
	if s.config.Kind == Sentinel {
		name = s.config.Client.Sentinel.MasterSet
	}
	l.only = l.newLane(name)
}

func (l *nodeQueues) newLane(node string) *nodeQueue {
	return &nodeQueue{store: l.store, node: node, breaker: breaker.New(l.store.config.Breaker)}
}

// of gives the queue of a slot.
func (l *nodeQueues) of(slot uint16) *nodeQueue {
	if table := l.table.Load(); table != nil {
		if lane := table[slot&(slots-1)]; lane != nil {
			return lane
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

// list gives every used queue, by address.
func (l *nodeQueues) list() []*nodeQueue {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return []*nodeQueue{l.only}
	}
	all := make([]*nodeQueue, 0, len(l.all))
	for _, lane := range l.all {
		all = append(all, lane)
	}
	slices.SortFunc(all, func(a, b *nodeQueue) int {
		if a.node < b.node {
			return -1
		}
		return 1
	})
	return all
}

// noticed requests a read of the slots after a failed call.
func (l *nodeQueues) noticed() {
	select {
	case l.look <- struct{}{}:
	default:
	}
}

// maxMet bounds the remembered nodes.
const maxMet = 4096

// isNode reports whether an address is, or was, that of a node.
func (l *nodeQueues) isNode(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.met[address]
}

// alarm stops callers from sending inline until calls are answered again.
func (l *nodeQueues) alarm() {
	l.only.calm.Store(false)
	for _, lane := range l.list() {
		lane.calm.Store(false)
	}
}

// How often the slots are read: the longest interval, and the shortest when calls fail.
const (
	lookEvery = time.Second
	lookAfter = 100 * time.Millisecond
	lookLimit = 500 * time.Millisecond
)

// follow reads the slots until ctx ends.
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

// refresh asks the nodes in turn, until one answers which node has which slot.
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

// read makes the table from the answer to CLUSTER SLOTS: for each range the first and the last
// slot, and the nodes, the master first.
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
		lane := seen[node]
		if lane == nil {
			if lane = l.all[node]; lane == nil {
				lane = l.newLane(node)
			}
			seen[node] = lane
			if len(l.met) < maxMet {
				l.met[node] = true
			}
		}
		for slot := first; slot <= last; slot++ {
			table[slot] = lane
		}
	}
	for node, lane := range l.all {
		if seen[node] == nil && lane.breaker.State() != breaker.Closed {
			l.store.tell(Change{Node: node, State: breaker.Closed, Gone: true})
		}
	}
	l.all = seen
	return &table, nil
}

func readRange(m *rueidis.RedisMessage) (first, last int64, node string, err error) {
	fields, err := m.ToArray()
	if err != nil || len(fields) < 3 {
		return 0, 0, "", fmt.Errorf("redis: CLUSTER SLOTS gave a range of %d fields: %w", len(fields), err)
	}
	if first, err = fields[0].AsInt64(); err != nil {
		return 0, 0, "", err
	}
	if last, err = fields[1].AsInt64(); err != nil {
		return 0, 0, "", err
	}
	if first < 0 || last >= slots {
		return 0, 0, "", fmt.Errorf("redis: CLUSTER SLOTS gave the slots %d to %d: there are %d", first, last, slots)
	}
	master, err := fields[2].ToArray()
	if err != nil || len(master) < 2 {
		return 0, 0, "", fmt.Errorf("redis: CLUSTER SLOTS gave a node of %d fields: %w", len(master), err)
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
