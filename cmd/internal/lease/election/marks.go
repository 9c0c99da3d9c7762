package election

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// MaxWrite bounds the marks of one Write: etcd takes at most 128 changes in a transaction.
	MaxWrite = 100
	// maxMarks bounds the marks that are read, and markPage those of one answer.
	maxMarks, markPage = 40_000, 1000
	// maxMark bounds the name of a mark, in bytes.
	maxMark = 256
)

// Marks reads the marks of the group: what earlier masters have written. Foreign values are left out. With more than 40,000
// marks it is an error: a master leaves at most 30,000 there.
func (e *Election) Marks(ctx context.Context) (map[string]int64, error) {
	client, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	end, revision := clientv3.GetPrefixRangeEnd(e.keys.marks), int64(0)
	for from := e.keys.marks; ; {
		within, cancel := context.WithTimeout(ctx, e.patience())
		got, err := client.Get(within, from, clientv3.WithRange(end), clientv3.WithLimit(markPage), clientv3.WithRev(revision))
		cancel()
		if err != nil {
			return nil, err
		}
		revision = got.Header.GetRevision()
		for _, kv := range got.Kvs {
			name := strings.TrimPrefix(string(kv.GetKey()), e.keys.marks)
			amount, err := strconv.ParseInt(string(kv.GetValue()), 10, 64)
			if err == nil && amount >= 0 && len(name) <= maxMark && utf8.ValidString(name) {
				all[name] = amount
			}
			from = string(kv.GetKey()) + "\x00"
		}
		switch {
		case len(all) > maxMarks:
			return nil, fmt.Errorf("lease/election: group %s has more than %d marks: delete the keys below %s", e.config.Group, maxMarks,
				e.keys.marks)
		case !got.More:
			return all, nil
		}
	}
}

// errTurn says that an earlier write without an answer has arrived meanwhile.
var errTurn = errors.New("lease/election: an earlier write has arrived late: write again")

// Write writes marks, or deletes those below 0: at most MaxWrite. It has an effect only while this server is the master of the
// term. With an error, the marks may be written or not, unless IsLost reports true. A write without an answer has no effect
// after a later one. One goroutine at a time calls Write.
func (e *Election) Write(ctx context.Context, term uint64, marks map[string]int64) error {
	t := e.tenure()
	if t == nil || t.term != term {
		return errLost
	}
	client, err := e.open(ctx)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, e.patience())
	defer cancel()
	if err := e.write(within, client, t, marks); err != nil {
		if !IsLost(err) {
			e.stats.failures.Add(1)
		}
		return err
	}
	e.stats.writes.Add(1)
	return nil
}

// write writes in one transaction, which is also the next turn.
func (e *Election) write(ctx context.Context, client *clientv3.Client, t *tenure, marks map[string]int64) error {
	if !e.turned {
		got, err := client.Get(ctx, e.keys.turn)
		if err != nil {
			return err
		}
		e.turn, e.turned = 0, true
		if len(got.Kvs) > 0 {
			e.turn = got.Kvs[0].GetModRevision()
		}
	}
	ops := []clientv3.Op{clientv3.OpPut(e.keys.turn, strconv.FormatUint(t.term, 10))}
	for name, amount := range marks {
		if amount < 0 {
			ops = append(ops, clientv3.OpDelete(e.keys.marks+name))
			continue
		}
		ops = append(ops, clientv3.OpPut(e.keys.marks+name, strconv.FormatInt(amount, 10)))
	}
	e.turned = false
	done, err := client.Txn(ctx).If(e.fence(t), clientv3.Compare(clientv3.ModRevision(e.keys.turn), "=", e.turn)).
		Then(ops...).Else(clientv3.OpGet(e.keys.master)).Commit()
	switch {
	case err != nil:
		return err
	case !done.Succeeded:
		kvs := firstRead(done)
		if len(kvs) == 0 || kvs[0].GetCreateRevision() != t.revision {
			return errLost
		}
		return errTurn
	}
	e.turn, e.turned = done.Header.GetRevision(), true
	return nil
}
