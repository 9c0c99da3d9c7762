package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/headgate/headgate/internal/config/source"
)

// recordPage bounds the rows of one statement, because a record has up to some 300 KiB.
const recordPage = 16

// Records implements source.Writer.
func (s *Source) Records(ctx context.Context, q source.RecordQuery) (page source.RecordPage, err error) {
	p := recordPages{page: &page}
	if q.After != "" {
		if p.after, err = strconv.ParseInt(q.After, 10, 64); err != nil || p.after < 1 {
			return page, source.ErrBadCursor
		}
	}
	number := max(0, min(q.Number, source.MaxRecords))
	err = s.with(ctx, func(c *connection) error {
		for more := true; more && !p.full && len(page.Records) < number; {
			want := min(recordPage, number-len(page.Records))
			p.rows = 0
			if err := c.rows(ctx, p.take, s.sql(recordsSQL), q.Object, p.after, want); err != nil {
				return err
			}
			if more = p.rows == want; p.full || more {
				page.Next = strconv.FormatInt(p.after, 10)
			} else {
				page.Next = ""
			}
		}
		return nil
	})
	if err != nil {
		return page, fmt.Errorf("config/source/postgres: the records cannot be read from %s: %w%s", s.config, err, advice(err))
	}
	return page, nil
}

// recordPages collects one page.
type recordPages struct {
	page  *source.RecordPage
	after int64 // The last record.
	bytes int
	rows  int  // The rows of the last statement.
	full  bool // A record has no space in the page.
}

// take takes one row. Rows that have no space are read too, because they have been sent.
func (p *recordPages) take(r row) error {
	var id int64
	var text string
	if err := r.scan(&id, &text); err != nil {
		return err
	}
	p.rows++
	if p.full = p.full || len(p.page.Records) > 0 && p.bytes+len(text) > source.RecordPageBytes; p.full {
		return nil
	}
	p.after, p.bytes = id, p.bytes+len(text)
	var record source.Record
	if json.Unmarshal([]byte(text), &record) == nil { // An operator may have inserted something else.
		p.page.Records = append(p.page.Records, record)
	}
	return nil
}
