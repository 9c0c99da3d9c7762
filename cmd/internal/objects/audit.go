package objects

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config/source"
)

// Record begins the record of a change by the caller of a request.
func Record(r *http.Request, object, reason string) source.Record {
	return source.Record{
		Time: time.Now().UTC().Truncate(time.Microsecond), Caller: access.CallOf(r.Context()).Client().Name(), Address: r.RemoteAddr,
		Object: object, Reason: reason,
	}
}

// Audit logs a change, whatever log.level is. err is nil if the change was made. With an error, it may have been made.
func Audit(log *slog.Logger, r *source.Record, err error) {
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelError
	}
	line := slog.NewRecord(time.Now(), level, "audit", 0)
	line.Add("caller", r.Caller, "address", r.Address, "action", r.Action, "object", r.Object, "before", r.Before, "after", r.After,
		"reason", r.Reason)
	if err != nil {
		line.Add("error", err)
	}
	_ = log.Handler().Handle(context.Background(), line) // Other lines of the log ignore its errors too.
}

// Bounds of the number of records in an answer.
const (
	defaultRecords = 100
	maxRecords     = 1000
)

// listAudit lists the records of the source. ?object=customers/acme selects those of an object.
func (c *Component) listAudit(w http.ResponseWriter, r *http.Request) {
	n, fault := calls.PageSize(r.URL.Query().Get("limit"), defaultRecords, maxRecords)
	if fault != nil {
		calls.Fail(c.log, w, fault)
		return
	}
	if object := r.URL.Query().Get("object"); object != "" {
		if _, err := source.ParseKey(object); err != nil {
			calls.Fail(c.log, w, calls.BadRequest("object must be rules/NAME, plans/NAME, customers/NAME, modes/current or modes/limits"))
			return
		}
	}
	writer := c.writer()
	if writer == nil {
		calls.Fail(c.log, w, calls.Failed(admin.Failure{
			Code: admin.CodeReadOnly,
			Error: "no records are kept, because the rules, plans and customers have no source that can be written: look for the lines " +
				"with the message audit in the log of each instance",
		}, http.StatusConflict))
		return
	}
	query := r.URL.Query()
	page, err := writer.Records(r.Context(), source.RecordQuery{Object: query.Get("object"), Number: n, After: query.Get("after")})
	switch {
	case errors.Is(err, source.ErrBadCursor):
		calls.Fail(c.log, w, calls.BadRequest("after is not valid: use next of the page before"))
	case err != nil:
		calls.Fail(c.log, w, calls.Unavailable(err))
	default:
		if page.Records == nil {
			page.Records = []source.Record{}
		}
		calls.WriteJSON(c.log, w, admin.Audit{Records: page.Records, Next: page.Next})
	}
}

// Done logs a change of the run time as Audit does, and remembers it among the actions of the instance. undo is the command that undoes
// it; "" without one.
func Done(host *component.Host, r *source.Record, undo string, err error) {
	Audit(host.Log, r, err)
	a := admin.Action{
		Time: r.Time, Action: r.Action, Object: r.Object, Caller: r.Caller, Address: r.Address, Reason: r.Reason, Before: r.Before,
		After: r.After, Undo: undo,
	}
	if err != nil {
		a.Error, a.Undo = err.Error(), ""
	}
	host.Actions.Add(a)
}
