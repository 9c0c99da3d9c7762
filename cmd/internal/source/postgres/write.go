package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headgate/headgate/internal/config/source"
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
		err := c.rows(ctx, func(r row) error {
			var kind, name, body string
			var revision int64
			err := r.scan(&kind, &name, &body, &revision)
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

var (
	// errConflict says that the object does not have the revision that the writer has read.
	errConflict = errors.New("config/source/postgres: conflict")
	// errAgain says that the transaction did nothing, and may succeed when it is repeated.
	errAgain = errors.New("config/source/postgres: the object was changed and changed back meanwhile")
)

// maxAttempts bounds the attempts of one write: PostgreSQL ends one of two transactions that wait for each other.
const maxAttempts = 3

// View implements source.Writer.
func (s *Source) View(ctx context.Context) (v source.View, err error) {
	err = s.with(ctx, func(c *connection) error {
		if err := c.run(ctx, beginWrite); err != nil {
			return err
		}
		if err := c.run(ctx, s.lockWritesSQL(false)); err != nil { // Another write is in the view as a whole, or not at all.
			return err
		}
		if v, err = c.view(ctx, s); err != nil {
			return err
		}
		return c.run(ctx, "COMMIT")
	})
	if err != nil {
		return v, fmt.Errorf("config/source/postgres: the last writes cannot be read from %s: %w%s", s.config, err, advice(err))
	}
	return v, nil
}

// view reads the last writes. The caller holds the lock of writes.
func (c *connection) view(ctx context.Context, s *Source) (v source.View, err error) {
	err = c.rows(ctx, func(r row) error { return r.scan(&v.Position, &v.RulesAndPlans, &v.Customers) }, s.sql(viewSQL))
	return v, err
}

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
	for range maxAttempts {
		err = s.with(ctx, func(c *connection) error {
			revision, err = c.write(ctx, s, &w, string(record))
			return err
		})
		if errors.Is(err, errConflict) || code(err) == "23505" { // unique_violation
			err = s.conflict(ctx, &w)
		}
		if !isAgain(err) {
			break
		}
	}
	_, missing := errors.AsType[*source.MissingError](err)
	_, lost := errors.AsType[*source.ConflictError](err)
	switch {
	case err == nil:
		return revision, nil
	case missing, lost, errors.Is(err, source.ErrStale):
		return 0, err
	case isAgain(err):
		return 0, fmt.Errorf("%w: nothing was changed, in %d attempts: try again when other transactions have ended",
			s.fault("written", w.Key, err), maxAttempts)
	}
	return 0, s.fault("written", w.Key, err)
}

// write makes the change in one transaction. An error after which the change may have been made says so.
func (c *connection) write(ctx context.Context, s *Source, w *source.Write, record string) (revision int64, err error) {
	if err := c.run(ctx, beginWrite); err != nil {
		return 0, err
	}
	if err := c.conditions(ctx, s, w); err != nil {
		return 0, err
	}
	found := false
	sql, args := s.changeSQL(w)
	err = c.rows(ctx, func(r row) error {
		found = true
		return r.scan(&revision)
	}, sql, args...)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, errConflict
	}
	err = c.rows(ctx, func(row) error { return nil },
		s.sql(addRecordSQL), w.Record.Time.UTC().Format(time.RFC3339Nano), w.Record.Object, record, w.Kind == source.Customer)
	if err != nil {
		return 0, err
	}
	if err := c.run(ctx, "COMMIT"); err != nil {
		if isRolledBack(err) {
			return 0, err
		}
		return 0, fmt.Errorf("%w: %w", err, source.ErrUnknownResult)
	}
	if w.Delete {
		return 0, nil
	}
	return revision, nil
}

// conditions checks what a write needs, and keeps it true until the transaction ends.
func (c *connection) conditions(ctx context.Context, s *Source, w *source.Write) error {
	shared := w.Kind == source.Customer && (w.View == nil || w.View.WithoutCustomers)
	if err := c.run(ctx, s.lockWritesSQL(shared)); err != nil {
		return err
	}
	if w.View != nil {
		now, err := c.view(ctx, s)
		if err != nil {
			return err
		}
		if now.RulesAndPlans != w.View.RulesAndPlans || now.Customers != w.View.Customers && !w.View.WithoutCustomers {
			return source.ErrStale
		}
	}
	for _, need := range w.Needs {
		found := false
		err := c.rows(ctx, func(row) error { found = true; return nil }, s.sql(needSQL), need.Kind.String(), need.Name)
		if err != nil {
			return err
		}
		if !found {
			return &source.MissingError{Key: need}
		}
	}
	return nil
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
	switch {
	case err != nil && !errors.Is(err, source.ErrNotFound):
		return fmt.Errorf("config/source/postgres: %s was changed by another writer, and nothing was written: %w", w.Key, err)
	case o.Revision == w.Revision:
		return errAgain
	}
	return &source.ConflictError{Key: w.Key, Revision: o.Revision, Expected: w.Revision}
}

// fault adds the object and the place to an error.
func (s *Source) fault(what string, key source.Key, err error) error {
	return fmt.Errorf("config/source/postgres: %s cannot be %s in %s: %w%s", key, what, s.config, err, advice(err))
}

// isRolledBack reports whether a failed COMMIT has certainly changed nothing. A server that ends the connection may have
// committed before.
func isRolledBack(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && answer.SeverityUnlocalized == "ERROR"
}

// isAgain reports whether a transaction did nothing because of another one.
func isAgain(err error) bool {
	switch code(err) {
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return true
	}
	return errors.Is(err, errAgain)
}

// code gives the code of an error that the server has answered; "" for others.
func code(err error) string {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		return answer.Code
	}
	return ""
}
