package app

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/config/source"
	"github.com/headgate/headgate/internal/access"
	"github.com/headgate/headgate/internal/admin"
)

// record begins the record of a change by the caller of a request.
func (a *adminServers) record(r *http.Request, object, reason string) source.Record {
	return source.Record{
		Time: time.Now().UTC().Truncate(time.Microsecond), Caller: access.CallOf(r.Context()).Client().Name(), Address: r.RemoteAddr,
		Object: object, Reason: reason,
	}
}

// audit logs a change. err is nil if the change was made. With an error, it may have been made.
func (i *Instance) audit(r *source.Record, err error) {
	terms := []any{
		"caller", r.Caller, "address", r.Address, "action", r.Action, "object", r.Object, "before", r.Before, "after", r.After,
		"reason", r.Reason,
	}
	if err != nil {
		i.options.Log.Error("audit", append(terms, "error", err)...)
		return
	}
	i.options.Log.Info("audit", terms...)
}

// Bounds of the number of records in an answer.
const (
	defaultRecords = 100
	maxRecords     = 1000
)

// listAudit lists the records of the source. ?object=customers/acme selects those of an object.
func (a *adminServers) listAudit(w http.ResponseWriter, r *http.Request) {
	n, fault := pageSize(r.URL.Query().Get("limit"), defaultRecords, maxRecords)
	if fault != nil {
		a.fail(w, fault)
		return
	}
	writer := a.instance.writer()
	if writer == nil {
		a.fail(w, &failure{admin.Failure{
			Code: admin.CodeReadOnly,
			Error: "no records are kept, because the rules, plans and customers have no source that can be written: look for the lines " +
				"with the message audit in the log of each instance",
		}, http.StatusConflict})
		return
	}
	records, err := writer.Records(r.Context(), r.URL.Query().Get("object"), n)
	if err != nil {
		a.fail(w, unavailable(err, false))
		return
	}
	if records == nil {
		records = []source.Record{}
	}
	writeJSON(a.instance.options.Log, w, admin.Audit{Records: records})
}
