package postgres

import (
	"context"
	"errors"

	"github.com/headgate/headgate/internal/config/source"
)

// news collects what has changed since the last read, by transaction. The table has only the last version of an object,
// so transactions that have changed the same object are one change: without it, a part of the earlier one would be missing.
type news struct {
	rows  []newsRow
	bytes int // of the texts
	// numbers are those of the transactions, in joined.
	numbers map[string]int
	// joined leads from a transaction to another one of the same change, and at last to itself.
	joined []int
}

// newsRow is one object that has changed.
type newsRow struct {
	object      source.Object
	deleted     bool
	transaction int // one of those that have changed it
}

// news reads what has changed since a position, as one change for each transaction. all says that all objects must be read.
func (c *connection) news(ctx context.Context, s *Source, last position) (to position, changes []source.Change, all bool, err error) {
	n := news{numbers: map[string]int{}}
	var h head
	err = c.inSnapshot(ctx, s, func() error {
		if h, err = c.head(ctx, s, last); err != nil || !h.known {
			return err
		}
		take := func(r row) error { return errors.Join(c.takeNews(r, &h, &n, &all), s.checkBytes(n.bytes)) }
		if err := c.rows(ctx, take, s.sql(newsSQL), last.snapshot); err != nil {
			return err
		}
		if h.bytes += n.bytes; h.bytes <= s.config.MaxBytes {
			return nil
		}
		if err := c.rows(ctx, func(r row) error { return r.scan(&h.bytes) }, s.sql(bytesSQL)); err != nil {
			return err
		}
		return s.checkBytes(h.bytes)
	})
	return h.position, n.changes(last, h.position), all || !h.known, err
}

// takeNews takes one object that has changed.
func (c *connection) takeNews(r row, h *head, to *news, all *bool) error {
	var kind, name string
	var transactions []string
	var added, n int64
	var exists bool
	var body *string
	var revision *int64
	if err := r.scan(&kind, &name, &transactions, &added, &n, &exists, &body, &revision); err != nil {
		return err
	}
	h.rows += n
	h.objects += added
	key, ok := c.key(kind, name)
	switch {
	case kind == "":
		*all = true // TRUNCATE
	case !ok:
	case exists && body != nil && revision != nil:
		o := object(key, *body, *revision)
		to.add(transactions, newsRow{object: o})
		to.bytes += len(o.Text)
	default:
		to.add(transactions, newsRow{object: source.Object{Key: key}, deleted: true})
	}
	return nil
}

// add takes an object, and joins the transactions that have changed it.
func (n *news) add(transactions []string, row newsRow) {
	for i, transaction := range transactions {
		number, known := n.numbers[transaction]
		if !known {
			number = len(n.joined)
			n.numbers[transaction], n.joined = number, append(n.joined, number)
		}
		if i == 0 {
			row.transaction = number
		}
		n.joined[n.change(number)] = n.change(row.transaction)
	}
	n.rows = append(n.rows, row)
}

// change gives the transaction that stands for all of a change.
func (n *news) change(transaction int) int {
	for n.joined[transaction] != transaction {
		n.joined[transaction] = n.joined[n.joined[transaction]]
		transaction = n.joined[transaction]
	}
	return transaction
}

// changes gives the changes between two positions. Only the last one has the new position and its revision, because the receiver
// has all of them only then. Without objects, there is one change with the position.
func (n *news) changes(from, to position) []source.Change {
	var all []source.Change
	places := map[int]int{}
	for i := range n.rows {
		row := &n.rows[i]
		index := n.change(row.transaction)
		place, known := places[index]
		if !known {
			place = len(all)
			places[index], all = place, append(all, source.Change{Revision: from.revision(), Position: from.rows})
		}
		if c := &all[place]; row.deleted {
			c.Deleted = append(c.Deleted, row.object.Key)
		} else {
			c.Objects = append(c.Objects, row.object)
		}
	}
	if len(all) == 0 {
		all = []source.Change{{}}
	}
	last := &all[len(all)-1]
	last.Revision, last.Position = to.revision(), to.rows
	return all
}
