package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headgate/headgate/config/source"
)

// maxConnections bounds the connections of the methods except Follow. Each call has a connection of its own: calls are
// rare.
const maxConnections = 4

// with calls a function with a connection.
func (s *Source) with(ctx context.Context, call func(*connection) error) error {
	select {
	case s.free <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.free }()
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return call(c)
}

// Get implements source.Writer.
func (s *Source) Get(ctx context.Context, key source.Key) (o source.Object, err error) {
	if err := key.Check(); err != nil {
		return o, err
	}
	err = s.with(ctx, func(c *connection) error {
		found := false
		err := c.rows(ctx, func(r pgx.Rows) error {
			var kind, name, body string
			var revision int64
			err := r.Scan(&kind, &name, &body, &revision)
			o, found = object(key, body, revision), true
			return err
		}, s.sql(getSQL), key.Kind.String(), key.Name)
		if err == nil && !found {
			return source.ErrNotFound
		}
		return err
	})
	if err != nil && !errors.Is(err, source.ErrNotFound) {
		err = s.fault("read", key, err)
	}
	return o, err
}

// errConflict says that the object does not have the revision that the writer has read.
var errConflict = errors.New("config/source/postgres: conflict")

// Write implements source.Writer.
func (s *Source) Write(ctx context.Context, w source.Write) (revision int64, err error) {
	if w.Record.Time.IsZero() {
		w.Record.Time = time.Now()
	}
	if w.Record.Object == "" {
		w.Record.Object = w.Key.String()
	}
	if err := w.Check(); err != nil {
		return 0, err
	}
	record, err := json.Marshal(w.Record)
	if err != nil {
		return 0, fmt.Errorf("config/source/postgres: the record of %s: %w", w.Key, err)
	}
	err = s.with(ctx, func(c *connection) error {
		revision, err = c.write(ctx, s, &w, string(record))
		return err
	})
	switch {
	case err == nil:
		return revision, nil
	case errors.Is(err, errConflict) || isConflict(err):
		return 0, s.conflict(ctx, &w)
	}
	return 0, s.fault("written", w.Key, err)
}

// write makes the change in one transaction. An error after which the change may have been made says so.
func (c *connection) write(ctx context.Context, s *Source, w *source.Write, record string) (revision int64, err error) {
	if err := c.run(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"); err != nil {
		return 0, err
	}
	found := false
	sql, args := s.changeSQL(w)
	err = c.rows(ctx, func(r pgx.Rows) error {
		found = true
		return r.Scan(&revision)
	}, sql, args...)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, errConflict
	}
	err = c.rows(ctx, func(pgx.Rows) error { return nil },
		s.sql(addRecordSQL), w.Record.Time.UTC().Format(time.RFC3339Nano), w.Record.Object, record)
	if err != nil {
		return 0, err
	}
	if err := c.run(ctx, "COMMIT"); err != nil {
		if isAnswer(err) {
			return 0, err
		}
		return 0, fmt.Errorf("%w: the change may have been made: read the object to know", err)
	}
	if w.Delete {
		return 0, nil
	}
	return revision, nil
}

// changeSQL gives the statement that changes the object only if it has the revision. It gives the new revision.
func (s *Source) changeSQL(w *source.Write) (sql string, args []any) {
	kind := w.Kind.String()
	switch {
	case w.Delete:
		return s.sql(deleteSQL), []any{kind, w.Name, w.Revision}
	case w.Revision == 0:
		return s.sql(insertSQL), []any{kind, w.Name, w.Text}
	default:
		return s.sql(updateSQL), []any{kind, w.Name, w.Revision, w.Text}
	}
}

// conflict gives the error with the revision that the object has now.
func (s *Source) conflict(ctx context.Context, w *source.Write) error {
	o, err := s.Get(ctx, w.Key)
	if err != nil && !errors.Is(err, source.ErrNotFound) {
		return fmt.Errorf("config/source/postgres: %s was changed by another writer, and nothing was written: %w", w.Key, err)
	}
	return &source.ConflictError{Key: w.Key, Revision: o.Revision, Expected: w.Revision}
}

// Records implements source.Writer.
func (s *Source) Records(ctx context.Context, object string, n int) (records []source.Record, err error) {
	err = s.with(ctx, func(c *connection) error {
		return c.rows(ctx, func(r pgx.Rows) error {
			var text string
			if err := r.Scan(&text); err != nil {
				return err
			}
			var record source.Record
			if json.Unmarshal([]byte(text), &record) == nil { // An operator may have inserted something else.
				records = append(records, record)
			}
			return nil
		}, s.sql(recordsSQL), object, max(0, min(n, source.MaxRecords)))
	})
	if err != nil {
		return nil, fmt.Errorf("config/source/postgres: the records cannot be read from %s: %w%s", s.config, err, advice(err))
	}
	return records, nil
}

// fault adds the object and the place to an error.
func (s *Source) fault(what string, key source.Key, err error) error {
	return fmt.Errorf("config/source/postgres: %s cannot be %s in %s: %w%s", key, what, s.config, err, advice(err))
}

// isAnswer reports whether the server has answered with an error. Then the transaction was not made.
func isAnswer(err error) bool {
	return code(err) != ""
}

// isConflict reports whether two writers have met in the server.
func isConflict(err error) bool {
	switch code(err) {
	case "40001", "40P01", "23505": // serialization_failure, deadlock_detected, unique_violation
		return true
	}
	return false
}

// code gives the code of an error that the server has answered; "" for others.
func code(err error) string {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		return answer.Code
	}
	return ""
}
